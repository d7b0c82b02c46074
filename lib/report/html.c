#include "html.h"

#include <stdlib.h>
#include <string.h>

/* The tables' share of the 5 MB; the map's is in html_map.c. */
#define TABLES_BYTES (1536u * 1024)
#define TOP_LEAST    20u

/* html/ as C strings, made by html/embed.sh: before and after the parts. Both end with NULL. */
extern const char *const um_html_head[], *const um_html_tail[];

/* JSON without the space between its tokens, and in a form that cannot end the element around it: '<'
 * occurs only inside strings, which may say it by number. */
static void json_inert(FILE *out, const char *json)
{
    bool string = false;

    for (; *json; json++) {
        if (*json == '<')
            fputs("\\u003c", out);
        else if (string || !strchr(" \n", *json))
            fputc(*json, out);
        if (string && *json == '\\')
            fputc(*++json, out);
        else if (*json == '"')
            string = !string;
    }
}

um_status_t um_html_write(FILE *out, const um_html_part_t *parts, size_t n)
{
    for (size_t i = 0; um_html_head[i]; i++)
        fputs(um_html_head[i], out);
    for (size_t i = 0; i < n; i++) {
        if (!parts[i].json)
            continue;
        fprintf(out, "<script type=\"application/json\" id=\"part-%s\">", parts[i].name);
        json_inert(out, parts[i].json);
        fputs("</script>\n", out);
    }
    for (size_t i = 0; um_html_tail[i]; i++)
        fputs(um_html_tail[i], out);
    return ferror(out) ? UM_ERR_IO : UM_OK;
}

/* um_report_write into memory, with as many rows as there is room for. */
static um_status_t tables(um_report_t *report, um_report_options_t options, char **json)
{
    um_status_t status;
    size_t bytes;

    for (;;) {
        FILE *out = open_memstream(json, &bytes);

        if (!out)
            return UM_ERR_NO_MEMORY;
        status = um_report_write(report, &options, out);
        if (fclose(out) && !status)
            status = UM_ERR_NO_MEMORY;
        if (!status && (bytes <= TABLES_BYTES || options.top <= TOP_LEAST))
            return UM_OK;
        free(*json);
        *json = NULL;
        if (status)
            return status == UM_ERR_IO ? UM_ERR_NO_MEMORY : status;
        options.top = options.top / 2 < TOP_LEAST ? TOP_LEAST : options.top / 2;
    }
}

um_status_t um_html_report(um_report_t *report, const um_report_options_t *options,
                           const char *replay, FILE *out)
{
    um_report_options_t json = *options;
    char *text = NULL, *map = NULL;
    um_status_t status;

    json.format = UM_REPORT_JSON;
    json.without_map = true;
    status = tables(report, json, &text);
    if (!status && !(map = um_html_map(report)))
        status = UM_ERR_NO_MEMORY;
    if (!status)
        status =
            um_html_write(out,
                          (um_html_part_t[]){{"report", text}, {"map", map}, {"replay", replay}},
                          3);
    free(text);
    free(map);
    return status;
}
