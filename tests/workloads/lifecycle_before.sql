-- What the crash image's old control file knows of.
CREATE TABLESPACE outside LOCATION :'outside';
CREATE TABLE item (id serial PRIMARY KEY, body text);
INSERT INTO item (body) SELECT md5(g::text) FROM generate_series(1, 3000) g;
CREATE TABLE rows (id int PRIMARY KEY, value int);
INSERT INTO rows SELECT g, 0 FROM generate_series(1, 10) g;
CREATE TABLE elsewhere (id int PRIMARY KEY) TABLESPACE outside;
INSERT INTO elsewhere SELECT generate_series(1, 1000);
SELECT pg_replication_origin_create('upstream');
SELECT pg_replication_origin_create('gone');
CHECKPOINT;
