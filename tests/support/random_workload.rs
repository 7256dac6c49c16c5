//! Random workloads over every index access method. A seed decides all of one, so a failed round
//! can be run again.

use super::postgres::Stop;
use super::random::Random;
use super::recipe::{Recipe, Step};

/// Access method, columns and storage parameters.
type IndexKind = (&'static str, &'static str, &'static str);

/// Every access method with its kinds of operator classes.
const INDEX_KINDS: &[IndexKind] = &[
    ("btree", "id", ""),
    ("btree", "few, id DESC", "fillfactor = 50"),
    ("btree", "word text_pattern_ops", ""),
    ("btree", "few", ""),
    ("btree", "few", "deduplicate_items = off"),
    ("btree", "num, word", ""),
    ("hash", "id", ""),
    ("hash", "few", ""),
    ("hash", "word", "fillfactor = 10"),
    ("gin", "tags", "fastupdate = off"),
    ("gin", "tags", "gin_pending_list_limit = 64"),
    ("gin", "words", "gin_pending_list_limit = 256"),
    ("gin", "words, tags", "fastupdate = off"),
    ("gist", "place", ""),
    ("gist", "place", "buffering = on"),
    ("gist", "area, span", "fillfactor = 40"),
    ("gist", "net inet_ops", ""),
    ("gist", "words", ""),
    ("spgist", "place", ""),
    ("spgist", "place kd_point_ops", ""),
    ("spgist", "area", ""),
    ("spgist", "span", "fillfactor = 60"),
    ("spgist", "word", ""),
    ("spgist", "net", ""),
    ("brin", "id, word", "pages_per_range = 1"),
    (
        "brin",
        "at timestamp_minmax_multi_ops",
        "pages_per_range = 2",
    ),
    ("brin", "word text_bloom_ops", "pages_per_range = 3"),
    (
        "brin",
        "area, net inet_inclusion_ops",
        "pages_per_range = 1",
    ),
    ("bloom", "id, few, word", "length = 64"),
];

/// Predicates that choose some of the rows.
const PREDICATES: &[&str] = &[
    "id % 2 = 0",
    "id % 3 <> 1",
    "id % 10 <> 5",
    "id % 41 = 7",
    "few = 3",
    "few < 2",
    "id BETWEEN 200 AND 900",
    "id < 1500",
    "id > 2500",
    "ctid < '(9,0)'",
    "ctid > '(12,0)'",
    "tags @> '{3}'",
];

/// Assignments of updates: those to columns without an index stay on their page if they can.
const ASSIGNMENTS: &[&str] = &[
    "note = note + 1",
    "few = few + 1",
    "word = left(repeat(md5(id::text), 14), id % 400)",
    "id = id + 1",
    "tags = tags || id % 50",
    "words = words || to_tsvector('simple', 'v' || id % 90)",
    "place = point(id % 100, few), area = box(point(few, few), point(id % 300 + 9, 40))",
    "span = int4range(few, few + 1 + id % 700), net = '10.1.2.3'",
    "at = at + interval '200 days', num = num * 3",
];

#[derive(Debug)]
struct Index {
    name: String,
    method: &'static str,
}

#[derive(Debug)]
struct Table {
    name: String,
    indexes: Vec<Index>,
    /// The next id of a new row.
    next: u64,
}

/// A script while it is made, and what it has made so far.
#[derive(Debug)]
struct Workload {
    random: Random,
    script: String,
    tables: Vec<Table>,
    indexes_made: u32,
    transactions_made: u64,
    /// Prepared transactions that are neither committed nor rolled back.
    prepared: Vec<u64>,
}

/// The recipe of a seed.
pub fn round(seed: u64) -> Recipe {
    let mut random = Random::new(seed);
    let mut settings = [
        random.pick(&[
            "wal_compression = off",
            "wal_compression = pglz",
            "wal_compression = lz4",
        ]),
        random.pick(&[
            "full_page_writes = on",
            "full_page_writes = on",
            "full_page_writes = off",
        ]),
        random.pick(&["shared_buffers = 1MB", "shared_buffers = 64MB"]),
        random.pick(&["wal_level = replica", "wal_level = logical"]),
        random.pick(&[
            "wal_consistency_checking = ''",
            "wal_consistency_checking = 'all'",
        ]),
        random.pick(&["default_toast_compression = pglz", "wal_log_hints = on"]),
    ];
    // With pages that a later truncation zeroed and that no image restores, PostgreSQL's own check
    // gives up ("invalid page").
    if settings[1].ends_with("off") {
        settings[4] = "wal_consistency_checking = ''";
    }
    let initdb: &[&str] = if random.one_in(3) { &["-k"] } else { &[] };
    let operations = random.between(30, 70);
    let mut workload = Workload {
        random,
        script: String::new(),
        tables: Vec::new(),
        indexes_made: 0,
        transactions_made: 0,
        prepared: Vec::new(),
    };
    workload.set_up();
    for _ in 0..operations {
        workload.operation();
    }
    let mut steps = vec![Step::Sql(workload.script.leak())];
    // Recipes borrow their texts from the tests' sources; those of a round live as long.
    workload.script = String::from("BEGIN;\n");
    if workload.random.one_in(2) {
        workload.insert();
        workload.update();
        steps.push(Step::Session(workload.script.leak()));
    }
    let mut recipe = Recipe::new("round", steps)
        .variant("round", &settings)
        .initdb(initdb);
    recipe.crash = workload.random.pick(&[Stop::Kill, Stop::Immediate]);
    recipe
}

impl Workload {
    fn say(&mut self, statement: &str) {
        self.script += statement;
        self.script += ";\n";
    }

    /// Starts with a checkpoint: the one of initdb does not have this server's full_page_writes,
    /// and a server that starts does not log it.
    fn set_up(&mut self) {
        self.say("CHECKPOINT");
        self.say(
            "SET lock_timeout = '60s'; SET client_min_messages = error; CREATE EXTENSION bloom; \
             CREATE SEQUENCE numbers CACHE 3; CREATE TABLE apart (id int PRIMARY KEY, word text); \
             CREATE INDEX apart_word ON apart USING spgist (word)",
        );
        for number in 0..self.random.between(1, 3) {
            self.create_table(number);
        }
    }

    fn create_table(&mut self, number: u64) {
        let unlogged = if self.random.one_in(8) {
            "UNLOGGED "
        } else {
            ""
        };
        let fill_factor = self.random.pick(&[20, 60, 100]);
        self.say(&format!(
            "CREATE {unlogged}TABLE t{number} (id int, few int, word text, tags int[], \
             words tsvector, place point, area box, span int4range, net inet, at timestamp, \
             num numeric, note int DEFAULT 0) WITH (fillfactor = {fill_factor})"
        ));
        let name = format!("t{number}");
        self.tables.push(Table {
            name,
            indexes: Vec::new(),
            next: 1,
        });
        for _ in 0..self.random.between(1, 5) {
            self.create_index();
        }
        self.insert();
    }

    fn table(&mut self) -> usize {
        let count = u64::try_from(self.tables.len()).expect("a short list");
        usize::try_from(self.random.between(0, count - 1)).expect("an index")
    }

    fn table_name(&mut self) -> String {
        let table = self.table();
        self.tables[table].name.clone()
    }

    /// An index of one access method, or of any.
    fn index(&mut self, method: Option<&str>) -> Option<String> {
        let names: Vec<&str> = (self.tables.iter())
            .flat_map(|table| &table.indexes)
            .filter(|index| method.is_none_or(|method| index.method == method))
            .map(|index| index.name.as_str())
            .collect();
        (!names.is_empty()).then(|| self.random.pick(&names).to_owned())
    }

    fn operation(&mut self) {
        match self.random.between(0, 36) {
            0..=7 => self.insert(),
            8..=11 => self.delete(),
            12..=16 => self.update(),
            17..=20 => self.vacuum(),
            21 | 22 => self.create_index(),
            23 => self.drop_index(),
            24 => self.reindex(),
            25 | 26 => self.gin_pending_list(),
            27 | 28 => self.brin_ranges(),
            29 | 30 => self.savepoints(),
            31 | 32 => self.prepared_transaction(),
            33 => self.sequence(),
            34 => self.row_locks(),
            35 => self.scan(),
            _ => self.rare(),
        }
    }

    fn insert(&mut self) {
        let table = self.table();
        let rows = self.random.pick(&[1, 20, 300, 1000, 2500]);
        let (name, first) = (self.tables[table].name.clone(), self.tables[table].next);
        // Some rows come again: sorted inputs append, repeated ones go between.
        let first = if self.random.one_in(3) { 1 } else { first };
        let last = first + rows - 1;
        self.tables[table].next = self.tables[table].next.max(last + 1);
        let few = self.random.pick(&[2, 7, 40, 100_000]);
        let width = self.random.pick(&[3, 30, 200]);
        self.say(&format!(
            "INSERT INTO {name} SELECT g, g % {few}, left(repeat(md5((g * {few})::text), 7), \
             g % {width}), ARRAY[1, g % {few}, g % 301], to_tsvector('simple', 'all w' || \
              g % {few} \
             || ' ' || left(md5(g::text), 2)), point(g * 7919 % 1000, g % 997), \
             box(point(g % 500, g % 300), point(g % 500 + 3, g % 300 + 5)), \
             int4range(g % 1000, g % 1000 + g % {few} % 90), \
             ('10.' || g % 250 || '.' || g % 199 || '.0/24')::inet, \
             timestamp '2024-01-01' + g * interval '1 minute', g / 7.0 \
             FROM generate_series({first}, {last}) g"
        ));
    }

    fn delete(&mut self) {
        let (table, predicate) = (self.table_name(), self.random.pick(PREDICATES));
        self.say(&format!("DELETE FROM {table} WHERE {predicate}"));
    }

    fn update(&mut self) {
        let (table, predicate) = (self.table_name(), self.random.pick(PREDICATES));
        let assignment = self.random.pick(ASSIGNMENTS);
        self.say(&format!(
            "UPDATE {table} SET {assignment} WHERE {predicate}"
        ));
    }

    fn vacuum(&mut self) {
        let table = self.table_name();
        let how = self.random.pick(&[
            "INDEX_CLEANUP ON",
            "INDEX_CLEANUP ON",
            "FREEZE",
            "INDEX_CLEANUP OFF",
            "FREEZE, INDEX_CLEANUP ON, TRUNCATE OFF",
            "ANALYZE, PARALLEL 0",
        ]);
        self.say(&format!("VACUUM ({how}) {table}"));
    }

    fn create_index(&mut self) {
        let table = self.table();
        let name = format!("i{}", self.indexes_made);
        self.indexes_made += 1;
        let (method, columns, options) = self.random.pick(INDEX_KINDS);
        let concurrently = if self.random.one_in(3) {
            "CONCURRENTLY "
        } else {
            ""
        };
        let with = if options.is_empty() {
            String::new()
        } else {
            format!(" WITH ({options})")
        };
        let on = self.tables[table].name.clone();
        self.say(&format!(
            "CREATE INDEX {concurrently}{name} ON {on} USING {method} ({columns}){with}"
        ));
        self.tables[table].indexes.push(Index { name, method });
    }

    fn drop_index(&mut self) {
        let table = self.table();
        if let Some(index) = self.tables[table].indexes.pop() {
            let concurrently = if self.random.one_in(2) {
                "CONCURRENTLY "
            } else {
                ""
            };
            self.say(&format!("DROP INDEX {concurrently}{}", index.name));
        }
    }

    fn reindex(&mut self) {
        if let Some(index) = self.index(None) {
            let concurrently = if self.random.one_in(2) {
                "CONCURRENTLY "
            } else {
                ""
            };
            self.say(&format!("REINDEX INDEX {concurrently}{index}"));
        }
    }

    fn gin_pending_list(&mut self) {
        if let Some(index) = self.index(Some("gin")) {
            self.say(&format!("SELECT gin_clean_pending_list('{index}')"));
        }
    }

    fn brin_ranges(&mut self) {
        let Some(index) = self.index(Some("brin")) else {
            return;
        };
        let step = self.random.between(1, 5);
        let statement = match self.random.between(0, 2) {
            0 => format!("SELECT brin_summarize_new_values('{index}')"),
            1 => format!("SELECT brin_summarize_range('{index}', {step})"),
            _ => format!(
                "SELECT brin_desummarize_range('{index}', g) FROM generate_series(0, 40, {step}) g"
            ),
        };
        self.say(&statement);
    }

    fn savepoints(&mut self) {
        self.say("BEGIN");
        self.insert();
        self.say("SAVEPOINT a");
        self.delete();
        self.say("SAVEPOINT b");
        self.update();
        let back = self
            .random
            .pick(&["ROLLBACK TO a", "ROLLBACK TO b", "RELEASE a"]);
        self.say(back);
        self.insert();
        let end = self.random.pick(&["COMMIT", "COMMIT", "ROLLBACK"]);
        self.say(end);
    }

    /// On rows and a table of their own: nothing else may wait for a prepared transaction.
    fn prepared_transaction(&mut self) {
        if self.prepared.len() > 2 {
            let which = self.prepared.remove(0);
            let end = self.random.pick(&["COMMIT", "ROLLBACK"]);
            self.say(&format!("{end} PREPARED 'p{which}'"));
            return;
        }
        let number = self.transactions_made;
        self.transactions_made += 1;
        self.prepared.push(number);
        let (first, last) = (number * 1000, number * 1000 + self.random.between(1, 900));
        let rows = format!("id BETWEEN {first} AND {last}");
        self.say(&format!(
            "INSERT INTO apart SELECT g, 'w' || g FROM generate_series({first}, {last}) g; BEGIN; \
             UPDATE apart SET word = word || 'x' WHERE {rows} AND id % 3 = 0; SAVEPOINT s; \
             DELETE FROM apart WHERE {rows} AND id % 5 = 0; RELEASE s; \
             CREATE TABLE of_p{number} (a int); PREPARE TRANSACTION 'p{number}'"
        ));
    }

    fn sequence(&mut self) {
        let count = self.random.between(1, 200);
        let statement = self.random.pick(&[
            "SELECT setval('numbers', 1000)",
            "ALTER SEQUENCE numbers RESTART",
            "ALTER SEQUENCE numbers INCREMENT BY 2",
        ]);
        self.say(&format!(
            "SELECT nextval('numbers') FROM generate_series(1, {count}) g; {statement}; \
             SELECT nextval('numbers')"
        ));
    }

    /// A share lock and an update by a subtransaction of the same rows need a multixact.
    fn row_locks(&mut self) {
        let (table, predicate) = (self.table_name(), self.random.pick(PREDICATES));
        let assignment = self.random.pick(ASSIGNMENTS);
        let strength = self
            .random
            .pick(&["SHARE", "KEY SHARE", "NO KEY UPDATE", "UPDATE"]);
        self.say(&format!(
            "BEGIN; SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {predicate} FOR {strength}) \
             locked; SAVEPOINT a; UPDATE {table} SET {assignment} WHERE {predicate}; COMMIT"
        ));
    }

    /// Index scans mark what they find dead, and later insertions remove it.
    fn scan(&mut self) {
        let table = self.table_name();
        self.say(&format!(
            "SET enable_seqscan = off; SET enable_bitmapscan = off; \
             SELECT count(*) FROM {table} WHERE few = 3; \
             SELECT count(*) FROM {table} WHERE id BETWEEN 100 AND 2000; \
             SELECT count(*) FROM {table} WHERE word = 'w3'; \
             RESET enable_seqscan; RESET enable_bitmapscan"
        ));
    }

    fn rare(&mut self) {
        let table = self.table_name();
        let statement = self.random.pick(&[
            "TRUNCATE",
            "VACUUM FULL",
            "CHECKPOINT",
            "ALTER TABLE SET UNLOGGED",
            "ALTER TABLE SET LOGGED",
            "REINDEX TABLE",
            "DELETE FROM",
            "message",
        ]);
        self.say(&match statement {
            "CHECKPOINT" => "CHECKPOINT".to_owned(),
            "ALTER TABLE SET UNLOGGED" => format!("ALTER TABLE {table} SET UNLOGGED"),
            "ALTER TABLE SET LOGGED" => format!("ALTER TABLE {table} SET LOGGED"),
            "message" => "SELECT pg_logical_emit_message(true, 'round', 'text')".to_owned(),
            other => format!("{other} {table}"),
        });
    }
}
