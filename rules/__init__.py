"""Alert rules from triggers: build, lint, unit-test, route, push."""
