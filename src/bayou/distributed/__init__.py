"""Beyond one machine: shards are learnt side by side, and what they tell adds up.

fitting          fit: look at all of a source once, learn its shards, add up, refine in rounds
mixing           fit_mixture: a mixture, whose sums over rows are added up from shards
merging          merge, subtract: models as values
belonging        which models belong together
sparse_merging   merge, subtract: those of sparse and hashed rows
sources          where rows come from, cut into shards
readers          from what a shard gives to rows of numbers and targets
shards           what the rows of one shard tell
bank_shards      the same of banks whose members know nothing of time, member by member
hashed_shards    the same of hashed rows, of which only weights that were touched are sent
scores           how good what was said of each row was, before it was learnt
retelling        what a model has learnt, in the columns and units of another
naturals         beliefs in natural parameters, where what was learnt adds up
engines          what runs shards: a protocol, and the tree by which results become one
in_process       no workers
local_processes  processes of this machine
dask_cluster     Dask, on this machine or elsewhere
progress         how far the work is

Names are resolved when they are first used: a worker loads what its tasks need.
"""

from typing import TYPE_CHECKING

from bayou.lazy_names import lazy_names

if TYPE_CHECKING:
    from bayou.distributed.dask_cluster import DaskCluster
    from bayou.distributed.engines import Engine
    from bayou.distributed.fitting import Fitted, Move, Round, fit
    from bayou.distributed.in_process import InProcess
    from bayou.distributed.local_processes import LocalProcesses, WorkerDied
    from bayou.distributed.merging import merge, subtract
    from bayou.distributed.mixing import FittedMixture, fit_mixture
    from bayou.distributed.progress import Progress, bar
    from bayou.distributed.sources import Reading, shards_of

__all__ = [
    "DaskCluster",
    "Engine",
    "Fitted",
    "FittedMixture",
    "InProcess",
    "LocalProcesses",
    "Move",
    "Progress",
    "Reading",
    "Round",
    "WorkerDied",
    "bar",
    "fit",
    "fit_mixture",
    "merge",
    "shards_of",
    "subtract",
]

_NAMES = {
    "dask_cluster": "DaskCluster",
    "engines": "Engine",
    "fitting": "Fitted Move Round fit",
    "in_process": "InProcess",
    "local_processes": "LocalProcesses WorkerDied",
    "merging": "merge subtract",
    "mixing": "FittedMixture fit_mixture",
    "progress": "Progress bar",
    "sources": "Reading shards_of",
}
_HOMES, _resolve, __dir__ = lazy_names(__name__, _NAMES)
if not TYPE_CHECKING:  # a type checker knows the names above, and may say when one does not exist
    __getattr__ = _resolve
