#include "units.h"

#include <inttypes.h>
#include <stdio.h>

/* Three significant digits. */
static int scaled(double value, const char *unit, char *out, size_t size)
{
    int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

    return snprintf(out, size, "%.*f %s", digits, value, unit);
}

int um_units_bytes(uint64_t bytes, char *out, size_t size)
{
    static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes / 1024;
    size_t i = 0;

    if (bytes < 1024)
        return snprintf(out, size, "%" PRIu64 " B", bytes);
    for (; value >= 1024 && i < 5; i++)
        value /= 1024;
    return scaled(value, unit[i], out, size);
}

int um_units_ns(uint64_t ns, char *out, size_t size)
{
    if (ns < 1000)
        return snprintf(out, size, "%" PRIu64 " ns", ns);
    if (ns < 100000)
        return scaled((double)ns / 1e3, "us", out, size);
    if (ns < UINT64_C(999500000))
        return scaled((double)ns / 1e6, "ms", out, size);
    return scaled((double)ns / 1e9, "s", out, size);
}

int um_units_count(uint64_t count, char *out, size_t size)
{
    char digits[24], text[32];
    int n = snprintf(digits, sizeof(digits), "%" PRIu64, count), at = 0;

    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return snprintf(out, size, "%s", text);
}

int um_units_rate(uint64_t bytes_per_s, char *out, size_t size)
{
    if (bytes_per_s < 1000000000)
        return scaled((double)bytes_per_s / 1e6, "MB/s", out, size);
    return scaled((double)bytes_per_s / 1e9, "GB/s", out, size);
}
