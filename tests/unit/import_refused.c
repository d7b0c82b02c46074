/* Files that are nothing, not there, not readable or damaged: one line, never a crash, nothing beside. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import_collect.h"

static char dir[64];

static void enter(void)
{
    strcpy(dir, "/tmp/um_refused_XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
    cr_assert_eq(chdir(dir), 0);
}

static void leave(void)
{
    char command[256];

    snprintf(command, sizeof command, "chmod -R u+w %s; rm -rf %s", dir, dir);
    cr_assert_eq(system(command), 0);
}

TestSuite(import_refused, .init = enter, .fini = leave);

static void write_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");

    cr_assert_not_null(f);
    cr_assert_eq(fwrite(data, 1, n, f), n);
    fclose(f);
}

static void expect_refused(const char *path, um_status_t status, const char *part)
{
    um_import_kind_t kind = UM_IMPORT_UNKNOWN;
    um_collected_t c;
    char error[512];

    um_collect(&c, path);
    cr_expect_eq(c.status, status, "%s: %d, %s", path, c.status, c.error);
    cr_expect_eq(strncmp(c.error, path, strlen(path)), 0, "names the file: %s", c.error);
    cr_expect_not_null(strstr(c.error, part), "%s", c.error);
    cr_expect_null(strchr(c.error, '\n'));
    cr_expect_eq(c.n, 0);
    um_collected_free(&c);
    if (status != UM_ERR_UNSUPPORTED && status != UM_ERR_TRUNCATED) {
        cr_expect_eq(um_import_recognise(path, &kind, error, sizeof error), status);
        cr_expect_neq(error[0], '\0');
    }
}

Test(import_refused, what_is_not_a_file_of_a_profiler)
{
    char random[4096];
    uint64_t x = 88172645463325252;

    write_file("empty", "", 0);
    expect_refused("empty", UM_ERR_FORMAT, "empty");
    expect_refused(".", UM_ERR_IO, "directory");
    expect_refused("absent", UM_ERR_IO, "No such file");
    cr_assert_eq(mkfifo("fifo", 0600), 0);
    expect_refused("fifo", UM_ERR_IO, "not a regular file");
    write_file("prose.txt", "Start and Duration of a Name\n", 29);
    expect_refused("prose.txt", UM_ERR_FORMAT, "not an nvprof trace");
    write_file("report.nsys-rep", "prose", 5);
    expect_refused("report.nsys-rep", UM_ERR_FORMAT, "nsys export --type sqlite");
    for (size_t i = 0; i < sizeof random; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        random[i] = (char)x;
    }
    write_file("random", random, sizeof random);
    expect_refused("random", UM_ERR_FORMAT, "not an nvprof trace");
    write_file("t.umt", "UMT\r\n\x1a\n", 8);
    expect_refused("t.umt", UM_ERR_UNSUPPORTED, "already");
    write_file("banner", "==5== NVPROF is profiling process 5, command: a\nhi\n", 51);
    expect_refused("banner", UM_ERR_TRUNCATED, "ends before");
    write_file("head.sqlite", "SQLite format 3", 16);
    expect_refused("head.sqlite", UM_ERR_FORMAT, "not a database");
    um_make_database("other.sqlite", "CREATE TABLE music(song TEXT);");
    expect_refused("other.sqlite", UM_ERR_FORMAT, "neither nvprof's");
}

Test(import_refused, a_file_that_may_not_be_read)
{
    um_collected_t c;

    write_file("secret", "x", 1);
    chmod("secret", 0);
    if (access("secret", R_OK) == 0)
        cr_skip_test("root may read everything");
    um_collect(&c, "secret");
    cr_expect_eq(c.status, UM_ERR_IO);
    um_collected_free(&c);
}

#define NVPROF                                                                                     \
    "CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY, value TEXT);"                              \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER(counterKind INT, value INT,"          \
    " start INT, end INT, address INT, srcId INT, dstId INT, processId INT, flags INT);"           \
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO"   \
    " CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER SELECT 1, 4096, i, i + 1, i * 4096, -1, 0, 7, 2"  \
    " FROM n;"

/* The bytes of a good database; the caller's. */
static char *whole_database(size_t *bytes)
{
    struct stat st;
    char *data;
    FILE *f;

    um_make_database("whole.sqlite", NVPROF);
    cr_assert_eq(stat("whole.sqlite", &st), 0);
    *bytes = (size_t)st.st_size;
    data = malloc(*bytes);
    f = fopen("whole.sqlite", "rb");
    cr_assert(data != NULL && f != NULL);
    cr_assert_eq(fread(data, 1, *bytes, f), *bytes);
    fclose(f);
    return data;
}

Test(import_refused, a_database_cut_at_every_page_gives_one_line)
{
    size_t bytes;
    char *data = whole_database(&bytes);

    for (size_t n = 16; n < bytes; n += 2048) {
        um_collected_t c;

        write_file("cut.sqlite", data, n);
        um_collect(&c, "cut.sqlite");
        cr_expect(c.status == UM_ERR_FORMAT || c.status == UM_ERR_TRUNCATED, "%zu bytes: %d %s", n,
                  c.status, c.error);
        cr_expect_eq(strncmp(c.error, "cut.sqlite: ", 12), 0, "%s", c.error);
        um_collected_free(&c);
    }
    free(data);
}

Test(import_refused, flipped_bytes_in_a_database_never_crash)
{
    size_t bytes;
    char *data = whole_database(&bytes);
    uint64_t x = 88172645463325252;

    for (int round = 0; round < 300; round++) {
        um_collected_t c;
        char kept[8];
        size_t at[8];

        for (int i = 0; i < 8; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            at[i] = x % (round % 2 ? bytes : 4096);
            kept[i] = data[at[i]];
            data[at[i]] ^= (char)(1 << x % 8);
        }
        write_file("bad.sqlite", data, bytes);
        um_collect(&c, "bad.sqlite");
        cr_expect((c.status == UM_OK) == (c.error[0] == '\0'), "%d %s", c.status, c.error);
        um_collected_free(&c);
        for (int i = 8; i-- > 0;)
            data[at[i]] = kept[i];
    }
    free(data);
}

Test(import_refused, reading_a_database_creates_nothing_beside_it)
{
    um_collected_t c;

    um_make_database("t.sqlite", "PRAGMA journal_mode = WAL;" NVPROF);
    cr_assert_eq(access("t.sqlite-wal", F_OK), -1, "sqlite3 removes the log at a clean close");
    chmod(".", 0555);
    um_collect(&c, "t.sqlite");
    cr_expect_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_MIGRATE), 2000);
    cr_expect_eq(access("t.sqlite-wal", F_OK), -1);
    cr_expect_eq(access("t.sqlite-shm", F_OK), -1);
    um_collected_free(&c);
}

Test(import_refused, a_write_ahead_log_that_is_there_is_read)
{
    sqlite3 *db;
    um_collected_t c;

    /* Left open by its writer: the rows are in the log only. */
    cr_assert_eq(sqlite3_open("t.sqlite", &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db,
                              "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;" NVPROF,
                              NULL, NULL, NULL),
                 SQLITE_OK);
    um_collect(&c, "t.sqlite");
    cr_expect_eq(c.status, UM_OK, "%s", c.error);
    cr_expect_eq(um_collected_count(&c, UM_EV_MIGRATE), 2000);
    um_collected_free(&c);
    sqlite3_close(db);
}

Test(import_refused, unusual_names_are_names)
{
    static const char *const names[] = {"a b.sqlite", "50%.sqlite", "what?mode=rw.sqlite",
                                        "#1.sqlite", "file:x.sqlite"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        um_collected_t c;

        um_make_database("plain", NVPROF);
        cr_assert_eq(rename("plain", names[i]), 0);
        um_collect(&c, names[i]);
        cr_expect_eq(c.status, UM_OK, "%s: %s", names[i], c.error);
        cr_expect_eq(um_collected_count(&c, UM_EV_MIGRATE), 2000);
        um_collected_free(&c);
    }
}

Test(import_refused, kinds_are_told_by_content)
{
    um_import_kind_t kind = UM_IMPORT_UNKNOWN;
    char error[256];

    um_make_database("x.log", NVPROF);
    cr_expect_eq(um_import_recognise("x.log", &kind, error, sizeof error), UM_OK);
    cr_expect_eq(kind, UM_IMPORT_NVPROF_SQLITE);
    um_make_database("y.log", "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);");
    cr_expect_eq(um_import_recognise("y.log", &kind, error, sizeof error), UM_OK);
    cr_expect_eq(kind, UM_IMPORT_NSYS_SQLITE);
    write_file("z.sqlite", "==1== Profiling result:\n", 24);
    cr_expect_eq(um_import_recognise("z.sqlite", &kind, error, sizeof error), UM_OK);
    cr_expect_eq(kind, UM_IMPORT_NVPROF_TEXT);
    for (int k = UM_IMPORT_UNKNOWN; k <= UM_IMPORT_UMT; k++)
        cr_expect_neq(um_import_kind_name((um_import_kind_t)k)[0], '\0');
    cr_expect_str_eq(um_import_kind_name((um_import_kind_t)99), "unknown");
}
