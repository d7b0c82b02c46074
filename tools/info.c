/*
 * umrt info: what this machine can do, what the settings are, what a trace holds. Each is one JSON
 * document; the text is printed from the same document.
 */
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "options.h"
#include "um_runtime.h"
#include "um_tools.h"

static const char usage[] =
    "usage: umrt info [--json]            this machine\n"
    "       umrt info --config [--json]   every setting\n"
    "       umrt info [--json] FILE.umt   a trace\n"
    "\n"
    "  -c, --config   each setting with its value, where that came from, its\n"
    "                 default, range and meaning\n"
    "  -j, --json     as JSON\n"
    "  -h, --help     this text\n";

/* ---- this machine ------------------------------------------------------------------------------ */

/* Text that JSON can carry; what is not UTF-8 becomes '?'. */
json_t *um_info_text(const char *text)
{
    json_t *value = json_string(text);

    if (value == NULL) {
        char *copy = strdup(text);

        for (char *c = copy; c != NULL && *c != '\0'; c++)
            if ((unsigned char)*c >= 0x80)
                *c = '?';
        value = json_string(copy != NULL ? copy : "");
        free(copy);
    }
    return value;
}

json_t *um_info_device(const um_ev_device_t *device)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } attributes[] = {
        {UM_DEVICE_MANAGED, "managed_memory"},
        {UM_DEVICE_CONCURRENT_MANAGED, "concurrent_managed_access"},
        {UM_DEVICE_PAGEABLE, "pageable_memory_access"},
        {UM_DEVICE_HOST_PAGE_TABLES, "uses_host_page_tables"},
        {UM_DEVICE_DIRECT_HOST_ACCESS, "direct_access_from_host"},
        {UM_DEVICE_INTEGRATED, "integrated"},
        {UM_DEVICE_POOLS, "memory_pools"},
    };
    json_t *d = json_object();
    char capability[32];

    snprintf(capability, sizeof capability, "%u.%u", device->cc_major, device->cc_minor);
    json_object_set_new(d, "device", json_integer(device->device));
    json_object_set_new(d, "name", um_info_text(device->name));
    json_object_set_new(d, "uuid", um_info_text(device->uuid));
    json_object_set_new(d, "pci", um_info_text(device->pci));
    json_object_set_new(d, "compute_capability", json_string(capability));
    json_object_set_new(d, "multiprocessors", json_integer(device->sm_count));
    json_object_set_new(d, "memory_bytes", json_integer((json_int_t)device->memory_bytes));
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        json_object_set_new(d, attributes[i].name,
                            json_boolean((device->attributes & attributes[i].bit) != 0));
    return d;
}

static void take_machine_event(void *ctx, const um_event_t *event)
{
    json_t *root = ctx;
    const um_ev_fact_t *fact = &event->u.fact;

    if (event->type == UM_EV_DEVICE)
        json_array_append_new(json_object_get(root, "gpus"), um_info_device(&event->u.device));
    else if (event->type == UM_EV_FACT && strncmp(fact->key, "can.", 4) == 0)
        json_object_set_new(json_object_get(root, "can"), fact->key + 4, um_info_text(fact->value));
    else if (event->type == UM_EV_FACT && strncmp(fact->key, "process.", 8) != 0)
        json_object_set_new(json_object_get(root, "facts"), fact->key, um_info_text(fact->value));
}

/* Rows "key   value"; strings as they are, other values as JSON. */
void um_info_rows(const json_t *object)
{
    const char *key;
    json_t *value;
    int width = 0;

    json_object_foreach((json_t *)object, key, value) if ((int)strlen(key) > width) width =
        (int)strlen(key);
    json_object_foreach((json_t *)object, key, value)
    {
        char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);

        if (json_is_boolean(value))
            um_print("  %-*s  %s", width, key, json_is_true(value) ? "yes" : "no");
        else
            um_print("  %-*s  %s", width, key, text != NULL ? text : json_string_value(value));
        putchar('\n');
        free(text);
    }
}

void um_info_gpus(const json_t *gpus)
{
    json_t *gpu;
    size_t i;

    json_array_foreach(gpus, i, gpu)
    {
        printf("\nGPU %zu\n", i);
        um_info_rows(gpu);
    }
}

static void machine_text(const json_t *root)
{
    static const struct {
        const char *key, *doing;
    } abilities[] = {{"record", "record traces"},
                     {"hint", "hint (umrt run)"},
                     {"read", "read traces"}};
    const json_t *gpus = json_object_get(root, "gpus"), *can = json_object_get(root, "can");

    printf("this machine can\n");
    for (size_t i = 0; i < sizeof abilities / sizeof abilities[0]; i++) {
        const char *answer = json_string_value(json_object_get(can, abilities[i].key));

        printf("  %-16s %s\n", abilities[i].doing, answer != NULL ? answer : "no: unknown");
    }
    if (json_array_size(gpus) == 0)
        printf("\nGPUs: none seen\n");
    um_info_gpus(gpus);
    printf("\nfacts\n");
    um_info_rows(json_object_get(root, "facts"));
}

static json_t *machine(void)
{
    json_t *root =
        json_pack("{s:s, s:i, s:s, s:{}, s:[], s:{}, s:{}}", "schema", "umrt-machine",
                  "schema_version", 1, "umrt", UM_VERSION, "can", "gpus", "library", "facts");
    char library[PATH_MAX], error[PATH_MAX + 128] = "";

    if (root == NULL)
        return NULL;
    um_machine_probe(take_machine_event, root);
    if (um_locate_library(library, sizeof library, error, sizeof error) == UM_OK)
        json_object_set_new(root, "library", um_info_text(library));
    else {
        /* Without the library nothing can be injected, whatever the GPU is. */
        char answer[sizeof error + 8];

        snprintf(answer, sizeof answer, "no: %s", error);
        json_object_set_new(root, "library", json_null());
        json_object_set_new(json_object_get(root, "can"), "record", um_info_text(answer));
        json_object_set_new(json_object_get(root, "can"), "hint", um_info_text(answer));
    }
    return root;
}

/* ---- settings ---------------------------------------------------------------------------------- */

/* The runtime's settings in force, by name. */
static void take_setting(void *ctx, const um_event_t *event)
{
    json_object_set_new(ctx, event->u.option.name,
                        json_pack("[o, s]", um_info_text(event->u.option.value),
                                  event->u.option.source));
}

static json_t *config(void)
{
    json_t *root =
        json_pack("{s:s, s:i, s:[]}", "schema", "umrt-config", "schema_version", 1, "settings");
    json_t *in_force = json_object();
    um_settings_t settings;
    size_t n;
    const um_setting_t *table = um_setting_table(&n);

    if (root == NULL || um_settings_load(&settings) != UM_OK)
        return NULL;
    um_settings_each(&settings, take_setting, in_force);
    um_settings_free(&settings);
    for (const um_setting_t *s = table; s < table + n; s++) {
        const char *value = getenv(s->variable), *source = "environment";
        char text[4096];

        if (json_unpack(json_object_get(in_force, s->name), "[s, s]", &value, &source) != 0 &&
            (value == NULL || !s->valid(s, value)))
            value = s->fallback, source = "default"; /* an advisor's own: environment or default */
        um_setting_text(s, value, text, sizeof text);
        json_array_append_new(json_object_get(root, "settings"),
                              json_pack("{s:s, s:s, s:o, s:s, s:s, s:s, s:s}", "name", s->name,
                                        "variable", s->variable, "value", um_info_text(text),
                                        "source", source, "default", s->fallback, "range", s->range,
                                        "doc", s->doc));
    }
    json_decref(in_force);
    return root;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL && text[0] != '\0' ? text : "\"\"";
}

static void config_text(const json_t *root)
{
    json_t *s;
    size_t i;

    json_array_foreach(json_object_get(root, "settings"), i, s)
    {
        um_print("%s = %s   (%s)", text_of(s, "variable"), text_of(s, "value"),
                 text_of(s, "source"));
        printf("\n    %s", text_of(s, "doc"));
        if (strstr(text_of(s, "doc"), text_of(s, "range")) == NULL)
            printf("; %s", text_of(s, "range"));
        printf("; default %s\n", text_of(s, "default"));
    }
}

/* ---- the command ------------------------------------------------------------------------------- */

int um_info_print(json_t *root, bool as_json, void (*text)(const json_t *root))
{
    if (root == NULL) {
        um_say("out of memory");
        return UM_EXIT_FAILED;
    }
    if (as_json) {
        json_dumpf(root, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
        putchar('\n');
    } else {
        text(root);
    }
    json_decref(root);
    return UM_EXIT_OK;
}

int um_cmd_info(int argc, char **argv)
{
    static const struct option flags[] = {
        {"config", no_argument, NULL, 'c'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    bool as_json = false, settings = false;
    int val;

    opterr = 0;
    while ((val = getopt_long(argc, argv, ":cjh", flags, NULL)) != -1) {
        switch (val) {
        case 'c':
            settings = true;
            break;
        case 'j':
            as_json = true;
            break;
        case 'h':
            fputs(usage, stdout);
            return UM_EXIT_OK;
        default:
            return um_say_bad_option("info", flags, val, argv);
        }
    }
    if (optind < argc && (settings || optind + 1 < argc))
        return um_say_usage("info",
                            settings ? "--config takes no file" : "more than one file given");
    if (optind < argc)
        return um_info_trace(argv[optind], as_json);
    if (settings)
        return um_info_print(config(), as_json, config_text);
    return um_info_print(machine(), as_json, machine_text);
}
