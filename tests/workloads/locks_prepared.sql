-- Prepared transactions from before and after a checkpoint, finished in every way and left open.
CREATE TABLE promised (id int PRIMARY KEY, body text);
BEGIN; INSERT INTO promised SELECT g, 'early' FROM generate_series(1, 100) g; PREPARE TRANSACTION 'early_kept';
BEGIN; INSERT INTO promised SELECT g, 'early' FROM generate_series(101, 200) g; PREPARE TRANSACTION 'early_committed';
BEGIN; UPDATE ledger SET value = 1 WHERE id = 1; PREPARE TRANSACTION 'early_aborted';
CHECKPOINT;
COMMIT PREPARED 'early_committed';
ROLLBACK PREPARED 'early_aborted';
BEGIN; CREATE TABLE built (id int PRIMARY KEY); INSERT INTO built SELECT generate_series(1, 500); PREPARE TRANSACTION 'built';
COMMIT PREPARED 'built';
BEGIN; CREATE TABLE unbuilt (id int PRIMARY KEY); INSERT INTO unbuilt SELECT generate_series(1, 500); DROP TABLE built; PREPARE TRANSACTION 'unbuilt';
ROLLBACK PREPARED 'unbuilt';
BEGIN; DROP TABLE built; PREPARE TRANSACTION 'dropped';
COMMIT PREPARED 'dropped';
-- More than 64 subtransactions, so that assignment records and overflow come about.
DO $$
BEGIN
  FOR i IN 1..150 LOOP
    BEGIN
      UPDATE ledger SET value = value + 1 WHERE id = i;
      IF i % 5 = 0 THEN RAISE EXCEPTION 'undo'; END IF;
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
  END LOOP;
END $$;
BEGIN;
SELECT format('SAVEPOINT s; UPDATE ledger SET value = value + 10 WHERE id = %s;', g) FROM generate_series(1, 90) g \gexec
PREPARE TRANSACTION 'with_subtransactions';
BEGIN; SELECT value FROM parent WHERE id < 10 FOR SHARE; PREPARE TRANSACTION 'locks_only';
BEGIN; SELECT value FROM parent WHERE id < 20 FOR KEY SHARE; INSERT INTO child (parent) SELECT 5; COMMIT;
SELECT pg_current_xact_id();
