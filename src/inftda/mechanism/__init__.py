"""InfTDA: from true counts to released ones, level by level."""
