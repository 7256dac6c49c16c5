-- pgbench's tables at a hundredth of their scale, made before the checkpoint.
CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88)) WITH (fillfactor = 100);
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84)) WITH (fillfactor = 100);
CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84)) WITH (fillfactor = 100);
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
INSERT INTO pgbench_branches SELECT 1, 0;
INSERT INTO pgbench_tellers SELECT g, 1, 0 FROM generate_series(1, 10) g;
INSERT INTO pgbench_accounts SELECT g, 1, 0, '' FROM generate_series(1, 1000) g;
VACUUM ANALYZE;
CHECKPOINT;
