"""Beyond one machine: shards are learnt side by side, and what they tell adds up.

fitting          fit: look at all of a source once, learn its shards, add up, refine in rounds
merging          merge, subtract: models as values
sources          where rows come from, cut into shards
readers          from what a shard gives to rows of numbers and targets
shards           what the rows of one shard tell
retelling        what a model has learnt, in the columns and units of another
naturals         beliefs in natural parameters, where what was learnt adds up
engines          what runs shards: a protocol, and the tree by which results become one
in_process       no workers
local_processes  processes of this machine
dask_cluster     Dask, on this machine or elsewhere
progress         how far the work is
"""

from bayou.distributed.dask_cluster import DaskCluster
from bayou.distributed.engines import Engine
from bayou.distributed.fitting import Fitted, Move, Round, fit
from bayou.distributed.in_process import InProcess
from bayou.distributed.local_processes import LocalProcesses, WorkerDied
from bayou.distributed.merging import merge, subtract
from bayou.distributed.progress import Progress, bar
from bayou.distributed.sources import Reading, shards_of

__all__ = [
    "DaskCluster",
    "Engine",
    "Fitted",
    "InProcess",
    "LocalProcesses",
    "Move",
    "Progress",
    "Reading",
    "Round",
    "WorkerDied",
    "bar",
    "fit",
    "merge",
    "shards_of",
    "subtract",
]
