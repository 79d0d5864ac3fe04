"""Files of rows as streams of tables: generators that hold some rows at a time, however many there are."""

from bayou.streams.csv import read_csv
from bayou.streams.parquet import read_parquet

__all__ = ["read_csv", "read_parquet"]
