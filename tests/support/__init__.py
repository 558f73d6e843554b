"""What tests share: a clock and ids that stand still, records and stages made shortly, and the conformance suites."""
