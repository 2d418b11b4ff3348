"""What PyTorch's and JAX's front ends share: settings, questions that follow from others, and losses."""
