-- grr in duckdb
WITH valid AS (
  SELECT round, reporter, y AS report
  FROM reports
  WHERE y BETWEEN 0 AND 10
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::BLOB THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- grr in postgres
WITH valid AS (
  SELECT round, reporter, y AS report
  FROM reports
  WHERE y BETWEEN 0 AND 10
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::bytea THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- grr in spark
WITH valid AS (
  SELECT round, reporter, y AS report
  FROM reports
  WHERE y BETWEEN 0 AND 10
),
counted AS (
  SELECT round, CASE WHEN reporter < X'80' THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- blh in duckdb
WITH valid AS (
  SELECT round, reporter, CAST(key AS BIGINT) * 2 + y AS report
  FROM reports
  WHERE key BETWEEN 1 AND 15 AND y BETWEEN 0 AND 1
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::BLOB THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- blh in postgres
WITH valid AS (
  SELECT round, reporter, CAST(key AS BIGINT) * 2 + y AS report
  FROM reports
  WHERE key BETWEEN 1 AND 15 AND y BETWEEN 0 AND 1
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::bytea THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- blh in spark
WITH valid AS (
  SELECT round, reporter, CAST(key AS BIGINT) * 2 + y AS report
  FROM reports
  WHERE key BETWEEN 1 AND 15 AND y BETWEEN 0 AND 1
),
counted AS (
  SELECT round, CASE WHEN reporter < X'80' THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- olh in duckdb
WITH valid AS (
  SELECT round, reporter, CAST(key AS BIGINT) * 5 + y AS report
  FROM reports
  WHERE key BETWEEN 1 AND 24 AND y BETWEEN 0 AND 4
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::BLOB THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- olh in postgres
WITH valid AS (
  SELECT round, reporter, CAST(key AS BIGINT) * 5 + y AS report
  FROM reports
  WHERE key BETWEEN 1 AND 24 AND y BETWEEN 0 AND 4
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::bytea THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- olh in spark
WITH valid AS (
  SELECT round, reporter, CAST(key AS BIGINT) * 5 + y AS report
  FROM reports
  WHERE key BETWEEN 1 AND 24 AND y BETWEEN 0 AND 4
),
counted AS (
  SELECT round, CASE WHEN reporter < X'80' THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- sue in duckdb
WITH valid AS (
  SELECT round, reporter, hex(y) AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr(hex(y), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::BLOB THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT unnest(range(-1, 2)) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- sue in postgres
WITH valid AS (
  SELECT round, reporter, (upper(encode(y, 'hex')) COLLATE "C") AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr((upper(encode(y, 'hex')) COLLATE "C"), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::bytea THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT generate_series(-1, 2 - 1) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- sue in spark
WITH valid AS (
  SELECT round, reporter, hex(y) AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr(hex(y), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < X'80' THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT explode(sequence(-1, 2 - 1)) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- oue in duckdb
WITH valid AS (
  SELECT round, reporter, hex(y) AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr(hex(y), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::BLOB THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT unnest(range(-1, 2)) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- oue in postgres
WITH valid AS (
  SELECT round, reporter, (upper(encode(y, 'hex')) COLLATE "C") AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr((upper(encode(y, 'hex')) COLLATE "C"), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::bytea THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT generate_series(-1, 2 - 1) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- oue in spark
WITH valid AS (
  SELECT round, reporter, hex(y) AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr(hex(y), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < X'80' THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT explode(sequence(-1, 2 - 1)) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- rappor in duckdb
WITH valid AS (
  SELECT round, reporter, hex(y) AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr(hex(y), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::BLOB THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT unnest(range(-1, 2)) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- rappor in postgres
WITH valid AS (
  SELECT round, reporter, (upper(encode(y, 'hex')) COLLATE "C") AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr((upper(encode(y, 'hex')) COLLATE "C"), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::bytea THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT generate_series(-1, 2 - 1) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- rappor in spark
WITH valid AS (
  SELECT round, reporter, hex(y) AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr(hex(y), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < X'80' THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT explode(sequence(-1, 2 - 1)) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- l-osue in duckdb
WITH valid AS (
  SELECT round, reporter, hex(y) AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr(hex(y), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::BLOB THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT unnest(range(-1, 2)) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- l-osue in postgres
WITH valid AS (
  SELECT round, reporter, (upper(encode(y, 'hex')) COLLATE "C") AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr((upper(encode(y, 'hex')) COLLATE "C"), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::bytea THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT generate_series(-1, 2 - 1) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- l-osue in spark
WITH valid AS (
  SELECT round, reporter, hex(y) AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr(hex(y), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < X'80' THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT explode(sequence(-1, 2 - 1)) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- l-oue in duckdb
WITH valid AS (
  SELECT round, reporter, hex(y) AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr(hex(y), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::BLOB THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT unnest(range(-1, 2)) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- l-oue in postgres
WITH valid AS (
  SELECT round, reporter, (upper(encode(y, 'hex')) COLLATE "C") AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr((upper(encode(y, 'hex')) COLLATE "C"), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::bytea THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT generate_series(-1, 2 - 1) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- l-oue in spark
WITH valid AS (
  SELECT round, reporter, hex(y) AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr(hex(y), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < X'80' THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT explode(sequence(-1, 2 - 1)) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- l-soue in duckdb
WITH valid AS (
  SELECT round, reporter, hex(y) AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr(hex(y), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::BLOB THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT unnest(range(-1, 2)) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- l-soue in postgres
WITH valid AS (
  SELECT round, reporter, (upper(encode(y, 'hex')) COLLATE "C") AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr((upper(encode(y, 'hex')) COLLATE "C"), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::bytea THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT generate_series(-1, 2 - 1) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- l-soue in spark
WITH valid AS (
  SELECT round, reporter, hex(y) AS report
  FROM reports
  WHERE octet_length(y) = 2 AND substr(hex(y), 3, 2) <= '07'
),
counted AS (
  SELECT round, CASE WHEN reporter < X'80' THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts,
    CASE WHEN byte = -1 THEN -1
    ELSE 256 * byte + 16 * (position(substr(report, 2 * byte + 1, 1) IN '0123456789ABCDEF') - 1) + (position(substr(report, 2 * byte + 2, 1) IN '0123456789ABCDEF') - 1) END AS place
  FROM counted CROSS JOIN (SELECT explode(sequence(-1, 2 - 1)) AS byte) AS b
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- l-grr in duckdb
WITH valid AS (
  SELECT round, reporter, y AS report
  FROM reports
  WHERE y BETWEEN 0 AND 10
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::BLOB THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- l-grr in postgres
WITH valid AS (
  SELECT round, reporter, y AS report
  FROM reports
  WHERE y BETWEEN 0 AND 10
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::bytea THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- l-grr in spark
WITH valid AS (
  SELECT round, reporter, y AS report
  FROM reports
  WHERE y BETWEEN 0 AND 10
),
counted AS (
  SELECT round, CASE WHEN reporter < X'80' THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- biloloha in duckdb
WITH valid AS (
  SELECT round, reporter, CAST(key AS BIGINT) * 2 + y AS report
  FROM reports
  WHERE key BETWEEN 1 AND 15 AND y BETWEEN 0 AND 1
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::BLOB THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- biloloha in postgres
WITH valid AS (
  SELECT round, reporter, CAST(key AS BIGINT) * 2 + y AS report
  FROM reports
  WHERE key BETWEEN 1 AND 15 AND y BETWEEN 0 AND 1
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::bytea THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- biloloha in spark
WITH valid AS (
  SELECT round, reporter, CAST(key AS BIGINT) * 2 + y AS report
  FROM reports
  WHERE key BETWEEN 1 AND 15 AND y BETWEEN 0 AND 1
),
counted AS (
  SELECT round, CASE WHEN reporter < X'80' THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- ololoha in duckdb
WITH valid AS (
  SELECT round, reporter, CAST(key AS BIGINT) * 5 + y AS report
  FROM reports
  WHERE key BETWEEN 1 AND 24 AND y BETWEEN 0 AND 4
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::BLOB THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- ololoha in postgres
WITH valid AS (
  SELECT round, reporter, CAST(key AS BIGINT) * 5 + y AS report
  FROM reports
  WHERE key BETWEEN 1 AND 24 AND y BETWEEN 0 AND 4
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::bytea THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- ololoha in spark
WITH valid AS (
  SELECT round, reporter, CAST(key AS BIGINT) * 5 + y AS report
  FROM reports
  WHERE key BETWEEN 1 AND 24 AND y BETWEEN 0 AND 4
),
counted AS (
  SELECT round, CASE WHEN reporter < X'80' THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- dbitflippm in duckdb
WITH valid AS (
  SELECT round, reporter, y AS report
  FROM reports
  WHERE y[1] >= 0 AND y[11] < 22 AND list_sort(list_distinct(list_transform(y, lambda a: a // 2))) = list_transform(y, lambda a: a // 2)
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::BLOB THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts, unnest(list_append(report, -1)) AS place
  FROM counted
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- dbitflippm in postgres
WITH valid AS (
  SELECT round, reporter, y AS report
  FROM reports
  WHERE y[1] >= 0 AND y[11] < 22 AND (SELECT array_agg(DISTINCT a / 2 ORDER BY a / 2) FROM unnest(y) AS u (a)) = (SELECT array_agg(a / 2 ORDER BY i) FROM unnest(y) WITH ORDINALITY AS u (a, i))
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::bytea THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts, unnest(array_append(report, -1)) AS place
  FROM counted
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- dbitflippm in spark
WITH valid AS (
  SELECT round, reporter, y AS report
  FROM reports
  WHERE element_at(y, 1) >= 0 AND element_at(y, 11) < 22 AND array_sort(array_distinct(transform(y, a -> a div 2))) = transform(y, a -> a div 2)
),
counted AS (
  SELECT round, CASE WHEN reporter < X'80' THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
),
placed AS (
  SELECT round, duplicates, conflicts, explode(array_append(report, -1)) AS place
  FROM counted
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE place END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(CASE WHEN place = -1 THEN duplicates ELSE 0 END), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(CASE WHEN place = -1 THEN conflicts ELSE 0 END), 0) AS BIGINT) AS conflicts
FROM placed
GROUP BY GROUPING SETS ((round, place), ())

-- onebit in duckdb
WITH valid AS (
  SELECT round, reporter, CAST(key AS BIGINT) * 2 + y - 2 AS report
  FROM reports
  WHERE key BETWEEN 1 AND 10 AND y BETWEEN 0 AND 1
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::BLOB THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- onebit in postgres
WITH valid AS (
  SELECT round, reporter, CAST(key AS BIGINT) * 2 + y - 2 AS report
  FROM reports
  WHERE key BETWEEN 1 AND 10 AND y BETWEEN 0 AND 1
),
counted AS (
  SELECT round, CASE WHEN reporter < '\x80'::bytea THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())

-- onebit in spark
WITH valid AS (
  SELECT round, reporter, CAST(key AS BIGINT) * 2 + y - 2 AS report
  FROM reports
  WHERE key BETWEEN 1 AND 10 AND y BETWEEN 0 AND 1
),
counted AS (
  SELECT round, CASE WHEN reporter < X'80' THEN min(report) ELSE max(report) END AS report,
    CASE WHEN min(report) = max(report) THEN count(*) - 1 ELSE 0 END AS duplicates,
    CASE WHEN min(report) = max(report) THEN 0 ELSE count(*) - 1 END AS conflicts
  FROM valid
  GROUP BY round, reporter
)
SELECT CASE WHEN grouping(round) = 1 THEN -1 ELSE round END AS round,
  CASE WHEN grouping(round) = 1 THEN -1 ELSE report END AS place,
  CAST(grouping(round) AS BIGINT) AS total, count(*) AS n,
  CAST(coalesce(sum(duplicates), 0) AS BIGINT) AS duplicates, CAST(coalesce(sum(conflicts), 0) AS BIGINT) AS conflicts
FROM counted
GROUP BY GROUPING SETS ((round, report), ())