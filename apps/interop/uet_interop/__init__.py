"""Runs implementations of UET against each other in pairs, each pair and scenario on a network of its own."""
