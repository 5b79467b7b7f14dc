"""Writes the table of threats in SECURITY.md from the marks on the tests: .venv/bin/python -m deploy.threat_table"""

from tests import threats

if __name__ == "__main__":
    threats.SECURITY.write_text(threats.written(threats.SECURITY.read_text(), threats.table(threats.marked())))
