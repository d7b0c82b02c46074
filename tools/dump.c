/*
 * umrt dump: the events of a trace as text, one a line, for scripts and tests:
 *
 *   TIME_NS TYPE [tid=N] FIELD=VALUE ...
 *
 * Fields have the names of um_event.h. Addresses, handles, hashes and flags are hexadecimal, strings
 * are in double quotes with C escapes, enumerations that have names are printed by name, devices are
 * ordinals, "host" or "none", lists are [{...},{...}]. Lines that begin with '#' are the file's header.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/emitter.h"
#include "trace/schema.h"
#include "um_tools.h"
#include "um_trace.h"

static const char usage[] =
    "usage: umrt dump [OPTIONS] FILE.umt\n"
    "Prints the events of a trace as text, one a line: TIME_NS TYPE FIELD=VALUE ...\n"
    "\n"
    "  -t, --type=TYPE[,TYPE...]   only events of these types (gpu_fault, migrate, ...)\n"
    "      --file-order            as written, not sorted by time\n"
    "  -h, --help                  this text\n";

/* ---- values ------------------------------------------------------------------------------------ */

/* The name functions take their own enumerations; one line each makes them alike. */
#define NAME(of, type)                                                                             \
    static const char *name_##of(uint64_t value)                                                   \
    {                                                                                              \
        return of((type)value);                                                                    \
    }
NAME(um_event_type_name, um_event_type_t)
NAME(um_family_name, um_family_t)
NAME(um_migrate_cause_name, um_migrate_cause_t)
NAME(um_hint_kind_name, um_hint_kind_t)
NAME(um_hint_result_name, um_hint_result_t)

static const struct {
    um_event_type_t type;
    const char *field;
    const char *(*name)(uint64_t value);
} named[] = {
    {UM_EV_LOSS, "what", name_um_event_type_name},
    {UM_EV_REGION_ALLOC, "family", name_um_family_name},
    {UM_EV_MIGRATE, "cause", name_um_migrate_cause_name},
    {UM_EV_HINT, "kind", name_um_hint_kind_name},
    {UM_EV_HINT, "result", name_um_hint_result_name},
};

static const char *const hexadecimal[] = {"addr",       "host_addr", "dst_addr",  "src_addr",
                                          "pc",         "stream",    "call_site", "module_hash",
                                          "processors", "graph",     "flags",     "attributes",
                                          "load_bias"};
static const char *const devices[] = {"device", "src", "dst"};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool listed(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void print_string(const char *text)
{
    static const char escaped[] = "\"\\\n\t\r", letters[] = "\"\\ntr";

    putchar('"');
    while (*text != '\0') {
        const char *at = strchr(escaped, *text);
        size_t plain = um_text_plain(text);

        if (at != NULL)
            printf("\\%c", letters[at - escaped]);
        else if (plain == 0)
            printf("\\x%02x", (unsigned char)*text);
        else
            fwrite(text, 1, plain, stdout);
        text += at == NULL && plain != 0 ? plain : 1;
    }
    putchar('"');
}

static uint64_t load(const void *at, size_t bytes)
{
    uint32_t four;
    uint64_t eight;

    if (bytes == sizeof four) {
        memcpy(&four, at, sizeof four);
        return four;
    }
    memcpy(&eight, at, sizeof eight);
    return eight;
}

static void print_number(uint32_t type, const um_field_t *field, const void *at)
{
    uint64_t value = load(at, field->bytes);

    for (size_t i = 0; i < COUNT(named); i++)
        if (named[i].type == type && strcmp(named[i].field, field->name) == 0) {
            /* One word, whatever the name: "refused: capacity" becomes refused:capacity. */
            for (const char *c = named[i].name(value); *c != '\0'; c++)
                if (*c != ' ')
                    putchar(*c);
            return;
        }
    if (field->kind == UM_FIELD_SINT) {
        int64_t number = field->bytes == 4 ? (int32_t)value : (int64_t)value;

        if (listed(field->name, devices, COUNT(devices)) && number < 0)
            fputs(number == UM_DEVICE_HOST ? "host" : "none", stdout);
        else
            printf("%" PRId64, number);
    } else if (listed(field->name, hexadecimal, COUNT(hexadecimal))) {
        printf("0x%" PRIx64, value);
    } else {
        printf("%" PRIu64, value);
    }
}

static void print_value(uint32_t type, const um_field_t *field, const char *base)
{
    const char *text;

    if (field->kind != UM_FIELD_STRING) {
        print_number(type, field, base + field->offset);
        return;
    }
    memcpy(&text, base + field->offset, sizeof text);
    print_string(text);
}

static void print_list(uint32_t type, const um_field_t *list, const char *base)
{
    uint64_t n = load(base + list->offset, list->bytes);
    const char *element;

    memcpy(&element, base + list->array_offset, sizeof element);
    putchar('[');
    for (uint64_t i = 0; i < n; i++, element += list->element_bytes) {
        fputs(i > 0 ? ",{" : "{", stdout);
        for (size_t f = 1; f <= list->elements; f++) {
            printf("%s%s=", f > 1 ? "," : "", list[f].name);
            print_value(type, &list[f], element);
        }
        putchar('}');
    }
    putchar(']');
}

static void print_event(const um_event_t *event)
{
    const um_schema_t *schema = &um_schema_table[event->type];
    const char *base = (const char *)&event->u;

    printf("%" PRIu64 " %s", event->time_ns, schema->name);
    if (event->tid != 0)
        printf(" tid=%" PRIu32, event->tid);
    for (size_t i = 0; i < schema->n_fields; i++) {
        const um_field_t *field = &schema->fields[i];

        printf(" %s=", field->name);
        if (field->kind == UM_FIELD_ARRAY) {
            print_list(event->type, field, base);
            i += field->elements;
        } else {
            print_value(event->type, field, base);
        }
    }
    putchar('\n');
}

/* ---- the command ------------------------------------------------------------------------------- */

static const char *type_name(const void *ctx, size_t i)
{
    (void)ctx;
    i += UM_EV_NONE + 1;
    return i < UM_EV_TYPE_COUNT ? um_event_type_name((um_event_type_t)i) : NULL;
}

/* "gpu_fault,migrate" -> bits of um_event_type_t; 0 with a line when one is unknown. */
static uint64_t parse_types(char *list)
{
    uint64_t types = 0;

    for (char *word; (word = strsep(&list, ",")) != NULL;) {
        uint32_t t = UM_EV_NONE + 1;

        while (t < UM_EV_TYPE_COUNT && strcmp(um_event_type_name(t), word) != 0)
            t++;
        if (t == UM_EV_TYPE_COUNT) {
            const char *nearest = um_nearest(word, type_name, NULL);

            if (nearest != NULL)
                um_say_usage("dump", "there is no event type '%s', did you mean '%s'?", word,
                             nearest);
            else
                um_say_usage("dump",
                             "there is no event type '%s'; 'umrt info FILE' lists those of a trace",
                             word);
            return 0;
        }
        types |= UINT64_C(1) << t;
    }
    return types;
}

static int dump(const char *path, um_trace_order_t order, uint64_t types)
{
    char error[512];
    um_trace_reader_t *reader = NULL;
    const um_trace_info_t *info;
    const um_event_t *event;
    um_status_t status = um_input_check_trace(path, error, sizeof error);

    if (status == UM_OK)
        status = um_trace_reader_open(path, order, &reader, error, sizeof error);
    if (status != UM_OK) {
        um_say("%s", error);
        return UM_EXIT_USAGE;
    }
    info = um_trace_reader_info(reader);
    printf("# umt version=%" PRIu32 " events=%" PRIu64 " finished=%s\n", info->version,
           info->events, info->finished ? "yes" : "no");
    for (size_t i = 0; i < info->n_facts; i++) {
        um_print("# %s=", info->facts[i].key);
        print_string(info->facts[i].value);
        putchar('\n');
    }
    while ((status = um_trace_reader_next(reader, &event)) == UM_OK)
        if (event->type < UM_EV_TYPE_COUNT && (types >> event->type & 1) != 0)
            print_event(event);
    if (status != UM_ERR_NOT_FOUND)
        um_say("%s", um_trace_reader_error(reader));
    um_trace_reader_close(reader);
    return status == UM_ERR_NOT_FOUND ? UM_EXIT_OK : UM_EXIT_USAGE;
}

int um_cmd_dump(int argc, char **argv)
{
    static const struct option flags[] = {
        {"type", required_argument, NULL, 't'},
        {"file-order", no_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    um_trace_order_t order = UM_TRACE_TIME_ORDER;
    uint64_t types = ~UINT64_C(0);
    int val;

    opterr = 0;
    while ((val = getopt_long(argc, argv, ":ht:", flags, NULL)) != -1) {
        switch (val) {
        case 't':
            types = parse_types(optarg);
            if (types == 0)
                return UM_EXIT_USAGE;
            break;
        case 'f':
            order = UM_TRACE_FILE_ORDER;
            break;
        case 'h':
            fputs(usage, stdout);
            return UM_EXIT_OK;
        default:
            return um_say_bad_option("dump", flags, val, argv);
        }
    }
    if (optind != argc - 1)
        return um_say_usage("dump", argc == optind ? "no file given" : "more than one file given");
    return dump(argv[optind], order, types);
}
