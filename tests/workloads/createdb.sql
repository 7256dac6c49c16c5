-- Databases and tablespaces made, moved and dropped. :outside and :moved are directories that
-- exist; in-place tablespaces live inside the data directory.
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE outside LOCATION :'outside';
CREATE TABLE before (id int PRIMARY KEY, body text) TABLESPACE outside;
INSERT INTO before SELECT g, md5(g::text) FROM generate_series(1, 2000) g;
CREATE DATABASE source;
\c source
CREATE TABLE inherited (id int PRIMARY KEY, body text);
INSERT INTO inherited SELECT g, md5(g::text) FROM generate_series(1, 3000) g;
CREATE UNLOGGED TABLE forgotten (id int PRIMARY KEY);
INSERT INTO forgotten SELECT generate_series(1, 1000);
\c postgres
SET allow_in_place_tablespaces = on;
CREATE DATABASE filed TEMPLATE source STRATEGY file_copy;
CHECKPOINT;
CREATE DATABASE logged TEMPLATE source STRATEGY wal_log;
\c logged
UPDATE inherited SET body = 'changed' WHERE id % 3 = 0;
CREATE TABLE added AS SELECT * FROM inherited;
\c filed
DELETE FROM inherited WHERE id % 2 = 0;
VACUUM inherited;
\c postgres
SET allow_in_place_tablespaces = on;
UPDATE before SET body = 'changed' WHERE id < 500;
CREATE TABLESPACE inplace LOCATION '';
CREATE TABLESPACE moved LOCATION :'moved';
CREATE TABLE inside (id int PRIMARY KEY, body text) TABLESPACE inplace;
INSERT INTO inside SELECT g, md5(g::text) FROM generate_series(1, 1000) g;
CREATE TABLE mover (id int PRIMARY KEY, body text) TABLESPACE moved;
INSERT INTO mover SELECT g, md5(g::text) FROM generate_series(1, 1000) g;
ALTER TABLE mover SET TABLESPACE pg_default;
ALTER TABLE before SET TABLESPACE moved;
ALTER INDEX mover_pkey SET TABLESPACE outside;
CREATE DATABASE away TABLESPACE outside STRATEGY wal_log;
CREATE TABLESPACE passing LOCATION '';
DROP TABLESPACE passing;
INSERT INTO before SELECT g, 'late' FROM generate_series(3000, 3500) g;
