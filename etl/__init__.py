"""Traffic into rollouts: logs in, rows in partitioned Parquet, SQL out."""
