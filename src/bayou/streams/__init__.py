"""Sources of rows as streams of tables: generators that hold some rows at a time, however many there are."""

from bayou.numerics.broken_rows import Skipped, SkippedRow
from bayou.numerics.column_types import ColumnType, column_types
from bayou.numerics.libsvm_rows import LabelledRows
from bayou.numerics.sparse_table import SparseTable
from bayou.streams.arrow import read_arrow
from bayou.streams.csv import read_csv
from bayou.streams.ipc import read_ipc
from bayou.streams.json_lines import read_json_lines
from bayou.streams.libsvm import read_libsvm
from bayou.streams.parquet import read_parquet
from bayou.streams.sources import Tables, open_source, open_tables
from bayou.streams.vowpal import VowpalRows, read_vw, read_vw_rows

__all__ = [
    "ColumnType",
    "LabelledRows",
    "Skipped",
    "SkippedRow",
    "SparseTable",
    "Tables",
    "VowpalRows",
    "column_types",
    "open_source",
    "open_tables",
    "read_arrow",
    "read_csv",
    "read_ipc",
    "read_json_lines",
    "read_libsvm",
    "read_parquet",
    "read_vw",
    "read_vw_rows",
]
