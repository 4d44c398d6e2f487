"""What the tools of accelerators, kernel and fabric print → samples and events. Parsers are pure: text in."""
