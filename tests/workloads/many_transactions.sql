-- Transactions and multixacts enough for new pages of every SLRU.
CREATE TABLE rows (id int PRIMARY KEY, value int);
INSERT INTO rows SELECT g, 0 FROM generate_series(1, 10) g;
CREATE TABLE chain (id int PRIMARY KEY, value int) WITH (fillfactor = 50);
INSERT INTO chain SELECT g, 0 FROM generate_series(1, 50) g;
BEGIN;
SELECT value FROM rows FOR KEY SHARE;
PREPARE TRANSACTION 'shares';
CHECKPOINT;
DO $$
BEGIN
  FOR i IN 1..36000 LOOP
    PERFORM pg_current_xact_id();
    COMMIT;
  END LOOP;
  -- Each is a multixact of its own: a new transaction beside the prepared one.
  FOR i IN 1..2500 LOOP
    PERFORM value FROM rows WHERE id = 1 + i % 10 FOR KEY SHARE;
    COMMIT;
  END LOOP;
END $$;
CREATE TABLE upserted (id int PRIMARY KEY, value int);
INSERT INTO upserted SELECT g, 0 FROM generate_series(1, 100) g ON CONFLICT DO NOTHING;
INSERT INTO upserted SELECT g, 0 FROM generate_series(50, 150) g
  ON CONFLICT (id) DO UPDATE SET value = upserted.value + 1;
TRUNCATE chain;
INSERT INTO chain SELECT g, 0 FROM generate_series(1, 50) g;
