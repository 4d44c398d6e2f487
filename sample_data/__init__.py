"""Sample data: a recording of a real engine and a simulated fleet, both with labelled incidents."""
