"""The composition root: builds every object once and passes it down."""
