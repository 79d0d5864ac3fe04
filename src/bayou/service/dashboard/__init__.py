"""The dashboard: pages that need nothing from outside, and change while models learn."""
