#include "json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words) {
    struct json out;
    if (count > 1 && !strcmp(words[1], "memory"))
        json_start_string(&out);
    else
        json_start(&out, STDOUT_FILENO);
    json_open(&out, NULL, '{');
    json_text(&out, "text", "a \"b\" \\ \n \xff \xc3\xa9");
    json_bool(&out, "fine", true);
    json_open(&out, "numbers", '[');
    for (int i = -1; i < 4096; i++)
        json_int(&out, NULL, i);
    json_close(&out, ']');
    json_close(&out, '}');
    if (out.fd >= 0)
        return json_finish(&out);
    char *text = json_string(&out);
    fputs(text, stdout);
    free(text);
    return 0;
}
