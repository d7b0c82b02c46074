/* umrt gen: a trace of a program that never was, in which every access is known. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/config.h"
#include "sim/gen.h"
#include "um_tools.h"

static const char usage[] =
    "usage: umrt gen PATTERN -o FILE.umt [OPTIONS]\n"
    "       umrt gen --list\n"
    "Writes a trace of a made-up program whose every access is known, for umrt replay. Equal "
    "options\n"
    "give equal files.\n"
    "\n"
    "  -o, --output=FILE.umt   where to write\n"
    "  -s, --size=BYTES        managed memory of the program: 512M, 1T (1M to 64T;\n"
    "                          umrt replay takes up to 8T)\n"
    "  -n, --iterations=N      rounds of its loop\n"
    "  -r, --seed=N            where something is drawn by lot: gather, table, graph\n"
    "  -g, --gpus=N            where several GPUs are used: halo\n"
    "  -c, --compute=FACTOR    GPU time of a launch with all its data there, over the time its "
    "bytes\n"
    "                          take at 4 TB/s (what streaming kernels reach on an H200)\n"
    "  -l, --list              the patterns, what they do, and their defaults\n"
    "  -h, --help              this text\n";

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static int list(void)
{
    for (const um_gen_pattern_t *p = um_gen_patterns; p->name != NULL; p++) {
        const um_gen_options_t *d = &p->defaults;

        bool whole = d->bytes % GIB == 0; /* as it can be given */

        printf("%-14s %s\n%14s (--size=%" PRIu64 "%c --iterations=%" PRIu32 " --compute=%g",
               p->name, p->doc, "", d->bytes / (whole ? GIB : MIB), whole ? 'G' : 'M',
               d->iterations, d->compute);
        if (d->seed != 0)
            printf(" --seed=%" PRIu64, d->seed);
        if (d->gpus > 1)
            printf(" --gpus=%" PRIu32, d->gpus);
        puts(")");
    }
    return UM_EXIT_OK;
}

static const char *pattern_name(const void *ctx, size_t i)
{
    (void)ctx;
    return um_gen_patterns[i].name;
}

static int unknown(const char *name)
{
    const char *nearest = um_nearest(name, pattern_name, NULL);

    if (nearest != NULL)
        return um_say_usage("gen", "there is no pattern '%s'; did you mean '%s'?", name, nearest);
    return um_say_usage("gen", "there is no pattern '%s'; umrt gen --list has them", name);
}

/* Written beside `out` and renamed: what was there stays until all of the new one is. */
static int generate(const um_gen_pattern_t *pattern, const um_gen_options_t *options,
                    const char *out)
{
    size_t n = strlen(out) + 32;
    char *temporary = malloc(n);
    um_status_t status = UM_ERR_NO_MEMORY;
    int result = UM_EXIT_FAILED;

    if (!um_output_check_trace(out)) {
        result = UM_EXIT_USAGE;
        goto done;
    }
    if (temporary != NULL) {
        snprintf(temporary, n, "%s.%ld.part", out, (long)getpid());
        errno = 0;
        status = um_gen_file(pattern, options, UM_VERSION, temporary);
        if (status == UM_OK && rename(temporary, out) != 0)
            status = UM_ERR_IO;
    }
    if (status == UM_OK) {
        um_print("%s: %s", out, pattern->doc);
        putchar('\n');
        um_print("next: umrt replay %s", out);
        putchar('\n');
        result = UM_EXIT_OK;
    } else {
        um_say("gen: %s: %s", out,
               status == UM_ERR_IO && errno != 0 ? strerror(errno) : um_status_string(status));
        if (temporary != NULL)
            unlink(temporary);
    }
done:
    free(temporary);
    return result;
}

static bool factor(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && *out > 0;
}

int um_cmd_gen(int argc, char **argv)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"size", required_argument, NULL, 's'},
                                            {"iterations", required_argument, NULL, 'n'},
                                            {"seed", required_argument, NULL, 'r'},
                                            {"gpus", required_argument, NULL, 'g'},
                                            {"compute", required_argument, NULL, 'c'},
                                            {"list", no_argument, NULL, 'l'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const um_gen_pattern_t *pattern;
    um_gen_options_t o = {0};
    const char *out = NULL;
    char error[160];
    int option;

    optind = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":o:s:n:r:g:c:lh", options, NULL)) != -1) {
        switch (option) {
        case 'o':
            out = optarg;
            break;
        case 's':
            if (!um_parse_bytes(optarg, &o.bytes) || o.bytes == 0)
                return um_say_usage("gen", "--size: '%s' is no size", optarg);
            break;
        case 'n':
            if (!um_number_32(optarg, 1, UINT32_MAX, &o.iterations))
                return um_say_usage("gen", "--iterations: '%s' is no number from 1 up", optarg);
            break;
        case 'r':
            if (!um_number(optarg, 1, UINT64_MAX, &o.seed))
                return um_say_usage("gen", "--seed: '%s' is no number from 1 up", optarg);
            break;
        case 'g':
            if (!um_number_32(optarg, 1, UINT32_MAX, &o.gpus))
                return um_say_usage("gen", "--gpus: '%s' is no number from 1 up", optarg);
            break;
        case 'c':
            if (!factor(optarg, &o.compute))
                return um_say_usage("gen", "--compute: '%s' is no factor above 0", optarg);
            break;
        case 'l':
            return list();
        case 'h':
            fputs(usage, stdout);
            return UM_EXIT_OK;
        default:
            return um_say_bad_option("gen", options, option, argv);
        }
    }
    if (optind == argc)
        return um_say_usage("gen", "no pattern given");
    if (optind + 1 < argc)
        return um_say_usage("gen", "one pattern at a time");
    pattern = um_gen_find(argv[optind]);
    if (pattern == NULL)
        return unknown(argv[optind]);
    if (out == NULL)
        return um_say_usage("gen", "-o FILE.umt is missing");
    if (um_gen_complete(pattern, &o, error, sizeof error) != UM_OK)
        return um_say_usage("gen", "%s", error);
    return generate(pattern, &o, out);
}
