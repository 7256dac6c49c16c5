-- As createdb, with what forces a checkpoint of its own: nothing before it is replayed.
CREATE TABLESPACE outside LOCATION :'outside';
CREATE DATABASE wanderer STRATEGY file_copy;
CHECKPOINT;
CREATE TABLE early (id int PRIMARY KEY);
ALTER DATABASE wanderer SET TABLESPACE outside;
ALTER DATABASE wanderer SET TABLESPACE pg_default;
CREATE DATABASE victim STRATEGY wal_log TABLESPACE outside;
\c victim
CREATE TABLE lost AS SELECT generate_series(1, 1000) AS id;
\c postgres
DROP DATABASE victim;
DROP TABLESPACE outside;
INSERT INTO early SELECT generate_series(1, 1000);
