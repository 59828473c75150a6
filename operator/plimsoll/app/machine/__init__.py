"""The machine below an operator: its clocks, random numbers, threads and names."""
