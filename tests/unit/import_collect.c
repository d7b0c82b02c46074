#include "import_collect.h"

#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every string of every event type, as pointers into the event. */
static size_t strings_of(um_event_t *e, const char **out[3])
{
    switch (e->type) {
    case UM_EV_FACT:
        out[0] = &e->u.fact.key, out[1] = &e->u.fact.value;
        return 2;
    case UM_EV_DEVICE:
        out[0] = &e->u.device.name, out[1] = &e->u.device.uuid, out[2] = &e->u.device.pci;
        return 3;
    case UM_EV_OPTION:
        out[0] = &e->u.option.name, out[1] = &e->u.option.value, out[2] = &e->u.option.source;
        return 3;
    case UM_EV_LOSS:
        out[0] = &e->u.loss.reason;
        return 1;
    case UM_EV_CALL_SITE:
        out[0] = &e->u.call_site.frames;
        return 1;
    case UM_EV_REGION_LABEL:
        out[0] = &e->u.region_label.label;
        return 1;
    case UM_EV_KERNEL:
        out[0] = &e->u.kernel.name;
        return 1;
    case UM_EV_MARK:
        out[0] = &e->u.mark.domain, out[1] = &e->u.mark.name;
        return 2;
    default:
        return 0;
    }
}

static void collect(void *ctx, const um_event_t *event)
{
    um_collected_t *c = ctx;
    const char **text[3];

    if ((c->n & (c->n - 1)) == 0) {
        c->event = realloc(c->event, (c->n ? 2 * c->n : 1) * sizeof *c->event);
        cr_assert_not_null(c->event);
    }
    c->event[c->n] = *event;
    for (size_t i = strings_of(&c->event[c->n], text); i-- > 0;) {
        cr_assert_not_null(*text[i], "event type %u has a NULL string", event->type);
        *text[i] = strdup(*text[i]);
    }
    c->n++;
}

void um_collect(um_collected_t *out, const char *path)
{
    memset(out, 0, sizeof *out);
    out->status = um_import_file(path, collect, out, out->error, sizeof out->error);
}

void um_make_database(const char *path, const char *sql)
{
    sqlite3 *db;
    char *error = NULL;

    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_exec(db, sql, NULL, NULL, &error);
    cr_assert_null(error, "%s in: %s", error, sql);
    sqlite3_close(db);
}

void um_collect_sql(um_collected_t *out, const char *sql)
{
    um_collect_sql_process(out, sql, 0);
}

void um_collect_sql_process(um_collected_t *out, const char *sql, uint32_t process)
{
    char path[] = "/tmp/um_import_XXXXXX";
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    close(fd);
    um_make_database(path, sql);
    memset(out, 0, sizeof *out);
    out->status = um_import_process(path, process, collect, out, out->error, sizeof out->error);
    unlink(path);
}

void um_collected_free(um_collected_t *c)
{
    const char **text[3];

    for (size_t i = 0; i < c->n; i++)
        for (size_t k = strings_of(&c->event[i], text); k-- > 0;)
            free((char *)*text[k]);
    free(c->event);
    memset(c, 0, sizeof *c);
}

size_t um_collected_count(const um_collected_t *c, um_event_type_t type)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++)
        n += c->event[i].type == type;
    return n;
}

const um_event_t *um_collected_at(const um_collected_t *c, um_event_type_t type, size_t i)
{
    for (size_t k = 0; k < c->n; k++)
        if (c->event[k].type == type && i-- == 0)
            return &c->event[k];
    cr_assert(false, "no such event of type %d (%s)", (int)type, c->error);
    abort();
}

const char *um_collected_fact(const um_collected_t *c, const char *key)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->event[i].type == UM_EV_FACT && strcmp(c->event[i].u.fact.key, key) == 0)
            return c->event[i].u.fact.value;
    return "";
}

const char *um_collected_option(const um_collected_t *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->event[i].type == UM_EV_OPTION && strcmp(c->event[i].u.option.name, name) == 0)
            return c->event[i].u.option.value;
    return "";
}

bool um_collected_ordered(const um_collected_t *c)
{
    bool others = false;

    for (size_t i = 0; i < c->n; i++) {
        uint32_t type = c->event[i].type;
        bool fact = type == UM_EV_FACT || type == UM_EV_OPTION;

        if (i > 0 && c->event[i].time_ns < c->event[i - 1].time_ns)
            return false;
        if (fact && others)
            return false;
        others |= !fact && type != UM_EV_DEVICE && type != UM_EV_LOSS;
    }
    return true;
}
