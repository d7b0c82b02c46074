/* umrt calibrate: measures a present GPU and writes the machine description that replay uses. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/calibrate.h"
#include "um_tools.h"

static const char usage[] =
    "usage: umrt calibrate [-o FILE] [--gpu=N]\n"
    "Measures what managed memory costs on a GPU of this machine (under a minute, at most\n"
    "2 GiB) and writes a machine description for 'umrt replay --machine FILE'.\n"
    "Nothing else should use the GPU meanwhile.\n"
    "\n"
    "  -o, --output=FILE  default: NAME-OF-THE-GPU.json\n"
    "  -g, --gpu=N        which GPU, as CUDA numbers them; default 0\n"
    "  -h, --help         this text\n";

static void tell(const um_calibration_t *calibration, const char *path)
{
    printf("%s: %u of %u figures measured, the others as %s\n", path, calibration->measured,
           calibration->figures, calibration->nearest);
    for (uint32_t i = 0; i < calibration->figures && i < UM_CALIBRATE_FIGURES; i++) {
        um_print("  %-32s %s", um_machine_figures[i].name, calibration->source[i]);
        putchar('\n');
    }
}

/* "module_load: CUDA_ERROR_INVALID_IMAGE" is a call that the driver has refused. */
static bool is_a_call(const char *error)
{
    size_t n = strspn(error, "abcdefghijklmnopqrstuvwxyz_");

    return n > 0 && error[n] == ':';
}

static int calibrate(int32_t device, const char *output)
{
    um_calibration_t *calibration = malloc(sizeof *calibration);
    const char *sources[UM_CALIBRATE_FIGURES];
    char error[512] = "", refused[512] = "", date[16] = "", path[128];
    time_t now = time(NULL);
    struct tm day;
    um_calibrate_gpu_t gpu;
    um_status_t status = UM_ERR_NO_MEMORY;

    if (calibration == NULL)
        goto done;
    status = um_calibrate_open(device, &gpu, error, sizeof error);
    if (status != UM_OK) {
        if (is_a_call(error))
            snprintf(refused, sizeof refused, "%s", error);
        goto done;
    }
    if (gmtime_r(&now, &day) != NULL)
        strftime(date, sizeof date, "%F", &day);
    status = um_calibrate(&gpu, date, calibration, error, sizeof error);
    if (status != UM_OK)
        snprintf(refused, sizeof refused, "%s", um_calibrate_why(&gpu));
    um_calibrate_close(&gpu);
    if (status != UM_OK)
        goto done;
    if (output == NULL) {
        snprintf(path, sizeof path, "%s.json", calibration->machine.name);
        output = path;
    }
    for (uint32_t i = 0; i < UM_CALIBRATE_FIGURES; i++)
        sources[i] = calibration->source[i];
    status = um_machine_save(&calibration->machine, sources, date, output);
    if (status == UM_OK)
        tell(calibration, output);
    else
        snprintf(error, sizeof error, "%s: %s", output, um_status_string(status));
done:
    if (status != UM_OK && refused[0] != '\0')
        um_say("calibrate: GPU %d cannot be measured, its driver refuses a call that this needs: "
               "%s%s%s",
               (int)device, refused, strcmp(error, refused) == 0 ? "" : ", at ",
               strcmp(error, refused) == 0 ? "" : error);
    else if (status != UM_OK)
        um_say("calibrate: %s", error[0] != '\0' ? error : um_status_string(status));
    free(calibration);
    return status == UM_OK                                            ? UM_EXIT_OK
           : status == UM_ERR_UNSUPPORTED || status == UM_ERR_INVALID ? UM_EXIT_USAGE
                                                                      : UM_EXIT_FAILED;
}

int um_cmd_calibrate(int argc, char **argv)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"gpu", required_argument, NULL, 'g'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *output = NULL;
    char *end;
    long device = 0;
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, ":o:g:h", options, NULL)) != -1) {
        switch (option) {
        case 'o':
            if (optarg[0] == '\0')
                return um_say_usage("calibrate", "--output: no file name");
            output = optarg;
            break;
        case 'g':
            device = strtol(optarg, &end, 10);
            if (end == optarg || *end != '\0' || device < 0 || device > 1023)
                return um_say_usage("calibrate", "--gpu: '%s' is not the number of a GPU", optarg);
            break;
        case 'h':
            fputs(usage, stdout);
            return UM_EXIT_OK;
        default:
            return um_say_bad_option("calibrate", options, option, argv);
        }
    }
    if (optind < argc)
        return um_say_usage("calibrate", "'%s' is one argument too many", argv[optind]);
    return calibrate((int32_t)device, output);
}
