/* The tables of `umrt replay` as one page: no network, no other file, sorted by a click on a title. */
#include "replay.h"

#include <inttypes.h>
#include <stdlib.h>

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>umrt replay</title>\n<style>\n"
    ":root { color-scheme: light dark; --ink: #1c1c1e; --paper: #fff; --line: #d8d8dc; --soft: "
    "#6b6b70;\n  --bar: #4a8fd6; --least: #1c8a4a; }\n"
    "@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e8; --paper: #17181b; --line: "
    "#36383d;\n  --soft: #9b9ca2; --bar: #4a8fd6; --least: #45c07b; } }\n"
    "body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);\n"
    "  margin: 2rem auto; max-width: 90rem; padding: 0 1rem; }\n"
    "h2 { margin: 2.5rem 0 0; overflow-wrap: anywhere; } h3 { margin: 1.8rem 0 .2rem; }\n"
    "p { margin: .2rem 0; color: var(--soft); max-width: 60rem; }\n"
    ".wide { overflow-x: auto; }\n"
    "table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; }\n"
    "th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right;\n"
    "  white-space: nowrap; }\n"
    "th { cursor: pointer; color: var(--soft); font-weight: 600; }\n"
    "th:first-child, td:first-child { text-align: left; }\n"
    "th[aria-sort=ascending]::after { content: \" \\2191\"; }\n"
    "th[aria-sort=descending]::after { content: \" \\2193\"; }\n"
    ".bar { position: relative; width: 14rem; height: .8rem; }\n"
    ".bar i { position: absolute; inset: 0 auto 0 0; background: var(--bar); border-radius: 2px; "
    "}\n"
    ".bar b { position: absolute; top: -.2rem; bottom: -.2rem; border-left: 2px solid "
    "var(--least); }\n"
    "</style>\n</head>\n<body>\n<h1>umrt replay</h1>\n"
    "<p>What each policy would do. The bar is the time; the green line is the least time that any "
    "policy could need. A click on a title sorts.</p>\n";

static const char tail[] =
    "<script>\n"
    "for (const th of document.querySelectorAll('th')) th.addEventListener('click', () => {\n"
    "  const body = th.closest('table').tBodies[0], at = th.cellIndex;\n"
    "  const up = th.getAttribute('aria-sort') !== 'ascending';\n"
    "  for (const other of th.parentNode.cells) other.removeAttribute('aria-sort');\n"
    "  th.setAttribute('aria-sort', up ? 'ascending' : 'descending');\n"
    "  const key = row => row.cells[at].dataset.n ?? row.cells[at].textContent;\n"
    "  const order = (a, b) => isNaN(a) || isNaN(b) ? String(a).localeCompare(b) : a - b;\n"
    "  [...body.rows].sort((a, b) => (up ? 1 : -1) * order(key(a), key(b)))\n"
    "    .forEach(row => body.append(row));\n"
    "});\n"
    "</script>\n</body>\n</html>\n";

static void escaped(FILE *out, const char *text)
{
    char *clean = um_text_clean(text);

    for (const char *c = clean ? clean : ""; *c; c++) {
        switch (*c) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*c, out);
        }
    }
    free(clean);
}

static void paragraph(FILE *out, const char *text)
{
    fputs("<p>", out);
    escaped(out, text);
    fputs("</p>\n", out);
}

static void cell(FILE *out, um_value_t value)
{
    char text[64];

    if (value.kind == UM_VALUE_TEXT) {
        fputs("<td>", out);
        escaped(out, value.text);
        fputs("</td>", out);
        return;
    }
    um_value_print(value, text, sizeof(text));
    fprintf(out, "<td data-n=\"%" PRIu64 "\">%s</td>", value.n, text);
}

static double percent(uint64_t part, uint64_t of)
{
    return of ? (double)part / (double)of * 100 : 0;
}

static void group_html(const um_replay_t *replay, FILE *out, size_t g)
{
    const um_sweep_t *sweep = replay->sweep;
    const um_bounds_t *least = um_sweep_bounds(sweep, g);
    um_value_t row[UM_REPLAY_COLUMNS];
    uint64_t longest = least->least_ns;
    char text[256], bytes[32];

    for (size_t p = 0; p < sweep->n_policies; p++) {
        uint64_t ns = um_sweep_result(sweep, g, p)->total_ns;

        longest = ns > longest ? ns : longest;
    }
    um_replay_title(&sweep->groups[g], text, sizeof(text));
    fputs("<h3>", out);
    escaped(out, text);
    fputs("</h3>\n", out);
    um_value_print(um_bytes(least->least_bytes), bytes, sizeof(bytes));
    um_value_print(um_ns(least->least_ns), text, sizeof(text));
    fprintf(out, "<p>At least %s, and %s moved.</p>\n", text, bytes);
    um_replay_trust(&sweep->groups[g], text, sizeof(text));
    fputs("<p>Times: ", out);
    escaped(out, text);
    fputs("</p>\n<div class=\"wide\"><table>\n<thead><tr>", out);
    for (size_t c = 0; c < UM_REPLAY_COLUMNS; c++) {
        if (um_replay_columns[c].title)
            fprintf(out, "<th>%s</th>", um_replay_columns[c].title);
        if (c == 1)
            fputs("<th></th>", out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
    for (size_t p = 0; p < sweep->n_policies; p++) {
        um_replay_row(replay, g, p, row);
        fputs("<tr>", out);
        for (size_t c = 0; c < UM_REPLAY_COLUMNS; c++) {
            if (um_replay_columns[c].title)
                cell(out, row[c]);
            if (c == 1)
                fprintf(out,
                        "<td data-n=\"%" PRIu64 "\"><div class=\"bar\"><i style=\"width:%.2f%%\">"
                        "</i><b style=\"left:%.2f%%\"></b></div></td>",
                        row[c].n, percent(row[c].n, longest), percent(least->least_ns, longest));
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

um_status_t um_replay_html(const um_replay_t *replay, FILE *out)
{
    fputs(head, out);
    for (size_t f = 0; f < replay->n_files; f++) {
        const um_workload_t *w = replay->files[f].workload;
        char launches[32], peak[32];

        fputs("<h2>", out);
        escaped(out, replay->files[f].path);
        fputs("</h2>\n", out);
        um_value_print(um_count(w->n_launches), launches, sizeof(launches));
        um_value_print(um_bytes(w->managed_peak_bytes), peak, sizeof(peak));
        fprintf(out, "<p>%s: %s launches, %s managed.</p>\n", um_workload_kind_name(w->kind),
                launches, peak);
        paragraph(out, um_workload_kind_means(w->kind));
        if (!replay->files[f].whole)
            paragraph(out, "The file is damaged or was not closed: used as far as it goes.");
        for (size_t g = 0; g < replay->sweep->n_groups; g++) {
            if (replay->sweep->groups[g].file == f)
                group_html(replay, out, g);
        }
    }
    fputs(tail, out);
    return ferror(out) ? UM_ERR_IO : UM_OK;
}
