"""SQL dialects: the syntax in which databases differ."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """The syntax of one family of databases."""

    name: str
    half: str
    quotient: str
    pair: str
    item: str
    hexadecimal: str
    ascending: str
    series: str
    each: str


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            name="duckdb",
            half=r"'\x80'::BLOB",
            quotient="({0} // {1})",
            pair="[{0}, {1}]",
            item="{0}[{1}]",
            hexadecimal="hex({0})",
            ascending="list_sort(list_distinct(list_transform({0}, lambda a: a // 2)))"
            " = list_transform({0}, lambda a: a // 2)",
            series="(SELECT unnest(range({0}, {1})) AS {2})",
            each="unnest(list_append({0}, -1))",
        ),
        Dialect(
            name="postgres",
            half=r"'\x80'::bytea",
            quotient="({0} / {1})",
            pair="ARRAY[{0}, {1}]",
            item="{0}[{1}]",
            # By bytes, whatever the database's language is.
            hexadecimal="(upper(encode({0}, 'hex')) COLLATE \"C\")",
            ascending="(SELECT array_agg(DISTINCT a / 2 ORDER BY a / 2) FROM unnest({0}) AS u (a))"
            " = (SELECT array_agg(a / 2 ORDER BY i)"
            " FROM unnest({0}) WITH ORDINALITY AS u (a, i))",
            series="(SELECT generate_series({0}, {1} - 1) AS {2})",
            each="unnest(array_append({0}, -1))",
        ),
        Dialect(
            name="spark",
            half="X'80'",
            quotient="({0} div {1})",
            pair="array({0}, {1})",
            item="element_at({0}, {1})",
            hexadecimal="hex({0})",
            ascending="array_sort(array_distinct(transform({0}, a -> a div 2)))"
            " = transform({0}, a -> a div 2)",
            series="(SELECT explode(sequence({0}, {1} - 1)) AS {2})",
            each="explode(array_append({0}, -1))",
        ),
    )
}
