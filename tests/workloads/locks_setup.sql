-- Rows that many sessions lock at once.
CREATE TABLE parent (id int PRIMARY KEY, value int) WITH (fillfactor = 60);
CREATE TABLE child (id serial PRIMARY KEY, parent int REFERENCES parent);
INSERT INTO parent SELECT g, 0 FROM generate_series(1, 60) g;
CREATE TABLE ledger (id int PRIMARY KEY, value int);
INSERT INTO ledger SELECT g, 0 FROM generate_series(1, 200) g;
CHECKPOINT;
