"""What plugins about volumes compute."""
