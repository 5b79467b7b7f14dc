from agent.grounding.citations import marks
from agent.grounding.passages import cells, rows, shown, shown_within
from agent.language.text import estimate_tokens
from tests.unit.agent.support import hit

ALLOWANCES = hit(
    "Allowance: On-call standby | Unit: per week | China offices: CNY 600 | Berlin: EUR 150 | London: GBP 130\n"
    "Allowance: Night shift | Unit: per night | China offices: CNY 90 | Berlin: EUR 30 | London: GBP 25\n"
    "Allowance: First aid | Unit: per month | China offices: CNY 100 | Berlin: EUR 20 | London: GBP 18\n"
    "Allowance: Fire warden | Unit: per month | China offices: CNY 100 | Berlin: EUR 20 | London: GBP 18",
    title="Allowances 2026",
    heading=["Allowances"],
    kind="table",
)


def test_the_row_and_the_column_asked_for_are_shown() -> None:
    text = shown(ALLOWANCES, "How much is on-call standby in London?", 300)
    assert text == "Allowances 2026 > Allowances\nAllowance: On-call standby\nUnit: per week\nLondon: GBP 130"


def test_a_question_that_compares_rows_is_shown_each() -> None:
    asked = "How much is on-call standby and how much is night shift in London?"
    assert rows(ALLOWANCES, asked) == "\n".join(ALLOWANCES.text.splitlines()[:2])


def test_where_no_row_stands_out_all_are_shown() -> None:
    assert rows(ALLOWANCES, "How much in London?") == ALLOWANCES.text


def test_where_no_column_is_named_all_are_shown() -> None:
    assert "CNY 600" in shown(ALLOWANCES, "How much is on-call standby?", 300)


def test_the_first_cell_says_what_the_row_is_about_and_stays() -> None:
    row = "Years of service: 5 to 9 years | Annual leave: 25 days | Sick leave: 42 days"
    assert cells(row, "How much annual leave do I have?") == "Years of service: 5 to 9 years\nAnnual leave: 25 days"


def test_each_part_of_a_question_names_its_column() -> None:
    row = "Post: Captain | Watch: 4 hours | Rest after it: 8 hours | Longest tour of duty: 30 days"
    asked = "How long is the watch of a captain, and how many days is the longest tour of duty?"
    assert cells(row, asked) == "Post: Captain\nWatch: 4 hours\nLongest tour of duty: 30 days"
    # A part that names no column is asked of the same.
    assert cells(row, "How long is the watch of a captain, and who relieves the captain?").count("\n") == 1


FUNDS = hit(
    "每位船员每年的置装费按岗位确定，当年有效。\n"
    "岗位: 水手 | 奥斯陆: 每年 800 元 | 利马: 每年 90 欧元\n"
    "岗位: 大副和船长 | 奥斯陆: 每年 1,200 元 | 利马: 每年 130 欧元",
    title="置装费办法",
    kind="table",
)


def test_the_prose_of_a_table_is_no_row_of_it() -> None:
    assert shown(FUNDS, "船长在奥斯陆每年有多少置装费？", 300).splitlines() == [
        "置装费办法",
        "每位船员每年的置装费按岗位确定，当年有效。",
        "岗位: 大副和船长",
        "奥斯陆: 每年 1,200 元",
    ]


def test_what_short_passages_leave_goes_to_the_long_ones() -> None:
    short, long = hit("The quay closes at noon."), hit("A rule about the quay. " * 40)
    told = shown_within([short, long, short], "quay?", 400)
    assert told[0] == told[2] == shown(short, "quay?", 400)
    assert told[1] == shown(long, "quay?", 400)
    tight = shown_within([long, short, long], "quay?", 200)
    assert sum(map(estimate_tokens, tight)) <= 215
    assert tight[0] == tight[2] != shown(long, "quay?", 200)


def test_nothing_is_shown_of_nothing() -> None:
    assert shown_within([], "quay?", 100) == []


def test_prose_is_left_as_it_is_but_for_marks() -> None:
    text = shown(hit("See [chunk:abc234] for A | B."), "A?", 300)
    assert text.endswith("for A | B.")
    assert marks(text) == []


def test_what_is_shown_fits_the_budget() -> None:
    long = hit("A rule about travel. " * 500)
    assert estimate_tokens(shown(long, "travel?", 120)) <= 125


TIERS = hit(
    "Service: less than 2 years | Leave: 20 days\nService: 2 years to less than 5 years | Leave: 22 days\n"
    "Service: 5 years to less than 10 years of service | Leave: 25 days\n"
    "Service: 10 years of service and more | Leave: 28 days",
    kind="table",
)


def test_a_unit_picks_no_tier() -> None:
    assert rows(TIERS, "How many days of leave do I get after some years of service?") == TIERS.text


def test_a_quantity_picks_its_tier() -> None:
    assert rows(TIERS, "How many days of leave do I get after 3 years?") == TIERS.text.splitlines()[1]
