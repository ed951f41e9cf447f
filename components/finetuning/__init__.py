"""Fine-tuning: a checkpoint learns to answer, under block diffusion (method: post-training)."""
