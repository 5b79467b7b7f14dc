"""What may leave: boot switches, egress decisions, the one HTTP transport, the audit hook, tools and the ledger."""
