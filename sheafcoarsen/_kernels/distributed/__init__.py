"""Where the edges of a sheaf go that is cut into shards, and their maps: passes that count."""

from sheafcoarsen._kernels.distributed.sorting import (
    copy_blocks,
    count_keys,
    crossing_entries,
    crossing_pairs,
    find_destinations,
    sort_by_keys,
    sum_sizes,
    tallest_crossing,
    weigh_clusters,
)

__all__ = [
    "copy_blocks",
    "count_keys",
    "crossing_entries",
    "crossing_pairs",
    "find_destinations",
    "sort_by_keys",
    "sum_sizes",
    "tallest_crossing",
    "weigh_clusters",
]
