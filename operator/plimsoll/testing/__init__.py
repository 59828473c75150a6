"""For authors of plugins and strategies: builders, fakes, and the laws as tests to inherit."""
