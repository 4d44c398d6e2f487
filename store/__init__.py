"""What is kept and how: tables declared once, windows of time, one DuckDB file with one owner."""
