/*
 * umrt profile: what runs have learned of a program, shown, merged, compared. `show` and `diff` print the
 * same document as text or as JSON.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "model/profile.h"
#include "report/demangle.h"
#include "um_tools.h"

static const char usage[] =
    "usage: umrt profile show [--json] FILE.ump            what it holds\n"
    "       umrt profile merge -o OUT.ump FILE.ump...      one of several\n"
    "       umrt profile diff [--json] OLD.ump NEW.ump     what one holds and the other does not\n"
    "Profiles are what 'umrt run --profile' keeps from run to run.\n"
    "\n"
    "  -o, --output=FILE  merge: the file to write; may be one of the others\n"
    "  -j, --json         as JSON\n"
    "  -h, --help         this text\n";

/* ---- documents --------------------------------------------------------------------------------- */

static json_t *hexadecimal(uint64_t n)
{
    char text[24];

    snprintf(text, sizeof text, "0x%" PRIx64, n);
    return json_string(text);
}

/* What the values of a fact are called; a name that begins with '#' is of a hash. The rest is "value_N". */
static const struct {
    const char *who, *what; /* what NULL = whatever it is */
    const char *name[UM_LEARNED_VALUES];
} named[] = {
    {"readback", "read", {"#wait", "#place", "from_bytes", "to_bytes", "period", "nth"}},
    {"read_mostly", "verdict", {"judgement", "from_bytes", "to_bytes"}},
    {"footprint",
     "extent", /* behind the pointer: it ends between the first two */
     {"end_least_bytes", "end_most_bytes", "first_bytes", "density_percent", "backwards",
      "agreed_times"}},
    {"footprint", "stride", {"first_bytes", "run_bytes", "stride_bytes"}},
    {"footprint", /* the end in proportion to a parameter, between the two for 2^20 of it */
     "integer",
     {"parameter", "least_bytes_per_mi", "most_bytes_per_mi", "value_1", "value_2", "value_3"}},
    {"calm", "kept", {"verdict", "from_bytes", "to_bytes", "gpu_first"}},
    {"placement", "mapped", {"verdict", "from_bytes", "to_bytes", "before_ns_per_launch"}},
    {"ahead", "used", {"launches", "taken_back_times"}},
    {"sequence", "launch", {"#grid_xy", "#grid_z_block_x", "#block_yz", "device", "pointers"}},
    {"sequence",
     "takes",
     {"#signature", "#place", "offset_bytes", "#number_inside", "#done_before",
      "#done_before_first"}},
    {"sequence", "next", {"#next", "#order"}},
    {"guard", NULL, {"verdict", "with_ns", "without_ns"}},
};

static const char *value_name(const um_ev_learned_t *l, uint32_t i)
{
    for (size_t n = 0; n < sizeof named / sizeof named[0]; n++)
        if (strcmp(named[n].who, l->who) == 0 &&
            (named[n].what == NULL || strcmp(named[n].what, l->what) == 0))
            return named[n].name[i];
    return NULL;
}

/* By name; those without one where they are not 0. */
static json_t *values_of(const um_ev_learned_t *l)
{
    json_t *values = json_object();
    char number[24];

    for (uint32_t i = 0; i < UM_LEARNED_VALUES; i++) {
        const char *name = value_name(l, i);
        bool hash = name != NULL && name[0] == '#';

        if (name == NULL && l->value[i] == 0)
            continue;
        snprintf(number, sizeof number, "value_%u", i);
        json_object_set_new(values, name != NULL ? name + hash : number,
                            hash || l->value[i] > INT64_MAX
                                ? hexadecimal(l->value[i])
                                : json_integer((json_int_t)l->value[i]));
    }
    return values;
}

static json_t *fact_of(const um_ev_device_t *gpu, const um_ev_learned_t *l)
{
    json_t *o = json_object();

    json_object_set_new(o, "gpu", gpu != NULL ? um_info_text(gpu->name) : json_null());
    json_object_set_new(o, "who", um_info_text(l->who));
    json_object_set_new(o, "what", um_info_text(l->what));
    json_object_set_new(o, "kernel", um_info_text(l->kernel));
    json_object_set_new(o, "module_hash", hexadecimal(l->module_hash));
    json_object_set_new(o, "slot",
                        l->slot == UM_SLOT_NONE ? json_null() : json_integer((json_int_t)l->slot));
    json_object_set_new(o, "shape", hexadecimal(l->shape));
    json_object_set_new(o, "role", hexadecimal(l->role));
    json_object_set_new(o, "age", json_integer((json_int_t)l->age));
    json_object_set_new(o, "count", json_integer((json_int_t)l->count));
    json_object_set_new(o, "values", values_of(l));
    return o;
}

typedef struct um_document {
    json_t *gpus, *facts;
} um_document_t;

static void take_fact(void *ctx, const um_ev_device_t *gpu, const um_ev_learned_t *learned)
{
    um_document_t *document = ctx;
    size_t n = json_array_size(document->gpus);

    json_array_append_new(document->facts, fact_of(gpu, learned));
    /* They come model by model. */
    if (gpu != NULL &&
        (n == 0 ||
         json_integer_value(json_object_get(json_array_get(document->gpus, n - 1),
                                            "memory_bytes")) != (json_int_t)gpu->memory_bytes ||
         strcmp(json_string_value(json_object_get(json_array_get(document->gpus, n - 1), "name")),
                gpu->name) != 0))
        json_array_append_new(document->gpus, um_info_device(gpu));
}

static json_t *shown(const char *path, const um_profile_t *profile)
{
    um_document_t document = {json_array(), json_array()};

    um_profile_each(profile, take_fact, &document);
    return json_pack("{s:s, s:i, s:o, s:I, s:o, s:o}", "schema", "umrt-profile", "schema_version",
                     1, "file", um_info_text(path), "runs", (json_int_t)um_profile_runs(profile),
                     "gpus", document.gpus, "facts", document.facts);
}

/* ---- text -------------------------------------------------------------------------------------- */

static const char *word(const json_t *fact, const char *key)
{
    const char *text = json_string_value(json_object_get(fact, key));

    return text != NULL ? text : "";
}

static json_int_t number(const json_t *fact, const char *key)
{
    return json_integer_value(json_object_get(fact, key));
}

/* "readback  read  add_one(float*, unsigned long) #0  role 0x...; 7 times, age 1: from_bytes 0 ..." */
static void print_fact(const json_t *fact)
{
    char *kernel = um_demangle(word(fact, "kernel"));
    const char *name;
    json_t *value;

    um_print("  %-12s %-10s", word(fact, "who"), word(fact, "what"));
    if (kernel != NULL && kernel[0] != '\0')
        um_print(" %.80s", kernel);
    if (!json_is_null(json_object_get(fact, "slot")))
        printf(" #%lld", (long long)number(fact, "slot"));
    if (strcmp(word(fact, "role"), "0x0") != 0)
        um_print(" role %s", word(fact, "role"));
    printf("; %lld times, age %lld:", (long long)number(fact, "count"),
           (long long)number(fact, "age"));
    json_object_foreach(json_object_get(fact, "values"), name, value)
    {
        if (json_is_string(value))
            um_print(" %s %s", name, json_string_value(value));
        else
            um_print(" %s %lld", name, (long long)json_integer_value(value));
    }
    putchar('\n');
    free(kernel);
}

static void print_facts(const json_t *facts)
{
    const char *gpu = NULL;
    json_t *fact;
    size_t i;

    json_array_foreach(facts, i, fact)
    {
        if (i == 0 || strcmp(word(fact, "gpu"), gpu) != 0) {
            gpu = word(fact, "gpu");
            um_print("%s%s", gpu[0] != '\0' ? "on " : "on no known GPU", gpu);
            putchar('\n');
        }
        print_fact(fact);
    }
}

static void show_text(const json_t *root)
{
    size_t n = json_array_size(json_object_get(root, "facts"));

    um_print("%s: ", word(root, "file"));
    printf("%zu fact%s of %lld run%s\n", n, n == 1 ? "" : "s", (long long)number(root, "runs"),
           number(root, "runs") == 1 ? "" : "s");
    print_facts(json_object_get(root, "facts"));
}

/* ---- the difference ---------------------------------------------------------------------------- */

typedef struct um_compare {
    const um_profile_t *other;
    json_t *only, *changed;
} um_compare_t;

static uint32_t number_in(const um_profile_t *profile, const um_ev_device_t *gpu)
{
    /* The numbering only grows, and a model that is new has no facts. */
    return gpu != NULL ? um_profile_gpu((um_profile_t *)profile, gpu) : UM_PROFILE_NO_GPU;
}

static void compare_fact(void *ctx, const um_ev_device_t *gpu, const um_ev_learned_t *fact)
{
    um_compare_t *compare = ctx;
    const um_ev_learned_t *old =
        um_profile_find(compare->other, number_in(compare->other, gpu), fact);
    json_t *pair;

    if (old == NULL) {
        json_array_append_new(compare->only, fact_of(gpu, fact));
    } else if (compare->changed != NULL &&
               memcmp(old->value, fact->value, sizeof old->value) != 0) {
        pair = json_object();
        json_object_set_new(pair, "old", fact_of(gpu, old));
        json_object_set_new(pair, "new", fact_of(gpu, fact));
        json_array_append_new(compare->changed, pair);
    }
}

static json_t *difference(const char *const path[2], um_profile_t *const profile[2])
{
    json_t *root = json_pack("{s:s, s:i, s:o, s:o, s:[], s:[], s:[]}", "schema",
                             "umrt-profile-diff", "schema_version", 1, "old", um_info_text(path[0]),
                             "new", um_info_text(path[1]), "gone", "added", "changed");
    um_compare_t gone = {.other = profile[1], .only = json_object_get(root, "gone")};
    um_compare_t added = {.other = profile[0],
                          .only = json_object_get(root, "added"),
                          .changed = json_object_get(root, "changed")};

    if (root == NULL)
        return NULL;
    um_profile_each(profile[0], compare_fact, &gone);
    um_profile_each(profile[1], compare_fact, &added);
    return root;
}

static void difference_text(const json_t *root)
{
    const json_t *gone = json_object_get(root, "gone"), *added = json_object_get(root, "added"),
                 *changed = json_object_get(root, "changed");
    json_t *pair;
    size_t i;

    printf("%zu gone, %zu added, %zu with other values\n", json_array_size(gone),
           json_array_size(added), json_array_size(changed));
    if (json_array_size(gone) != 0)
        printf("gone\n");
    print_facts(gone);
    if (json_array_size(added) != 0)
        printf("added\n");
    print_facts(added);
    json_array_foreach(changed, i, pair)
    {
        printf("was\n");
        print_fact(json_object_get(pair, "old"));
        printf("is\n");
        print_fact(json_object_get(pair, "new"));
    }
}

/* ---- the command ------------------------------------------------------------------------------- */

/* One profile; NULL and *status set, having said why. */
static um_profile_t *load(const char *path, int *status)
{
    char error[PATH_MAX + 256];
    um_profile_t *profile;

    if (um_input_check_profile(path, error, sizeof error) == UM_OK &&
        um_profile_load(path, &profile, error, sizeof error) == UM_OK)
        return profile;
    um_say("%s", error);
    *status = UM_EXIT_USAGE;
    return NULL;
}

static int merge(char **paths, int n, const char *output)
{
    um_profile_t *all = NULL, *one;
    int status = UM_EXIT_OK;

    if (um_profile_new(&all) != UM_OK) {
        um_say("out of memory");
        return UM_EXIT_FAILED;
    }
    for (int i = 0; i < n && status == UM_EXIT_OK; i++)
        if ((one = load(paths[i], &status)) != NULL) {
            um_profile_merge(all, one);
            um_profile_free(one);
        }
    if (status == UM_EXIT_OK && !um_output_check_profile(output))
        status = UM_EXIT_USAGE;
    if (status == UM_EXIT_OK && um_profile_write(all, output) != UM_OK) {
        um_say("%s: %s", output, strerror(errno));
        status = UM_EXIT_FAILED;
    }
    um_profile_free(all);
    return status;
}

static int show(const char *path, bool as_json)
{
    int status = UM_EXIT_OK;
    um_profile_t *profile = load(path, &status);

    if (profile != NULL)
        status = um_info_print(shown(path, profile), as_json, show_text);
    um_profile_free(profile);
    return status;
}

static int diff(char **paths, bool as_json)
{
    const char *const path[2] = {paths[0], paths[1]};
    um_profile_t *profile[2] = {NULL, NULL};
    int status = UM_EXIT_OK;

    for (int i = 0; i < 2 && status == UM_EXIT_OK; i++)
        profile[i] = load(path[i], &status);
    if (status == UM_EXIT_OK)
        status = um_info_print(difference(path, profile), as_json, difference_text);
    um_profile_free(profile[0]);
    um_profile_free(profile[1]);
    return status;
}

int um_cmd_profile(int argc, char **argv)
{
    static const struct option flags[] = {
        {"output", required_argument, NULL, 'o'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const char *output = NULL, *verb;
    bool as_json = false;
    int val, n;

    opterr = 0;
    while ((val = getopt_long(argc, argv, ":o:jh", flags, NULL)) != -1) {
        switch (val) {
        case 'o':
            output = optarg;
            break;
        case 'j':
            as_json = true;
            break;
        case 'h':
            fputs(usage, stdout);
            return UM_EXIT_OK;
        default:
            return um_say_bad_option("profile", flags, val, argv);
        }
    }
    if (optind == argc)
        return um_say_usage("profile", "show, merge or diff?");
    verb = argv[optind++];
    n = argc - optind;
    if (output != NULL && strcmp(verb, "merge") != 0)
        return um_say_usage("profile", "--output goes with merge");
    if (as_json && strcmp(verb, "merge") == 0)
        return um_say_usage("profile", "--json goes with show and diff");
    if (strcmp(verb, "show") == 0)
        return n == 1 ? show(argv[optind], as_json)
                      : um_say_usage("profile", "show takes one file");
    if (strcmp(verb, "diff") == 0)
        return n == 2 ? diff(argv + optind, as_json)
                      : um_say_usage("profile", "diff takes two files");
    if (strcmp(verb, "merge") != 0)
        return um_say_usage("profile", "there is no '%s': show, merge or diff", verb);
    if (n == 0)
        return um_say_usage("profile", "merge: no file given");
    if (output == NULL)
        return um_say_usage("profile", "merge: no --output given");
    return merge(argv + optind, n, output);
}
