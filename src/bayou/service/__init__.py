"""Models behind HTTP that learn while they answer, and lose nothing: see docs/service.md."""
