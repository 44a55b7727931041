"""PipelineDP: people in each pair that occurs, Laplace noise, small counts dropped."""

import pipeline_dp as dp
import pyarrow.parquet as pq
from tables import Task

task = Task()
trips = pq.read_table(task.input / "trips.parquet")
rows = list(
    zip(*(trips[name].to_pylist() for name in ("person", "origin", "destination")), strict=True)
)
accountant = dp.NaiveBudgetAccountant(
    total_epsilon=task.settings["epsilon of a row"], total_delta=task.settings["delta of a row"]
)
engine = dp.DPEngine(accountant, dp.LocalBackend())
extractors = dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1:],
    value_extractor=lambda _: 0,
)
asked = dp.AggregateParams(
    noise_kind=dp.NoiseKind.LAPLACE,
    metrics=[dp.Metrics.PRIVACY_ID_COUNT],
    max_partitions_contributed=1,
    max_contributions_per_partition=1,
    post_aggregation_thresholding=True,
    partition_selection_strategy=dp.PartitionSelectionStrategy.LAPLACE_THRESHOLDING,
)
result = engine.aggregate(rows, asked, extractors)
accountant.compute_budgets()
made = list(result)
task.write(
    [pair[0] for pair, _ in made],
    [pair[1] for pair, _ in made],
    [float(metrics[0]) for _, metrics in made],
)
