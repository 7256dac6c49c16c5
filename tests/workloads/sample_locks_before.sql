-- A few rows that many sessions lock at once, and prepared transactions from before the checkpoint.
CREATE TABLE parent (id int PRIMARY KEY, value int) WITH (fillfactor = 60);
CREATE TABLE child (id serial PRIMARY KEY, parent int REFERENCES parent);
INSERT INTO parent SELECT g, 0 FROM generate_series(1, 12) g;
BEGIN; INSERT INTO parent VALUES (101, 1); PREPARE TRANSACTION 'early_kept';
BEGIN; INSERT INTO parent VALUES (102, 1); PREPARE TRANSACTION 'early_committed';
CHECKPOINT;
