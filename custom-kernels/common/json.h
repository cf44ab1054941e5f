/* A JSON document, streamed to a file descriptor through a fixed buffer (no allocation, no stdio) or kept in
 * memory. */
#ifndef PLUMB_JSON_H
#define PLUMB_JSON_H

#include <stdbool.h>
#include <stddef.h>

struct json {
    int fd;       /* -1: kept in memory */
    char *memory; /* `kept` bytes */
    size_t kept;
    int error; /* errno of the first write that failed, else 0 */
    bool first;
    bool newline; /* before the next value */
    size_t used;
    char buffer[4096];
};

/* Starts a document that is written to `fd`. */
void json_start(struct json *out, int fd);
/* Ends the document with a newline and flushes it; returns 0 or the errno of the first fault. */
int json_finish(struct json *out);

/* A document in memory: json_string ends it and returns it as a string that the caller frees; NULL if memory
 * was not sufficient. */
void json_start_string(struct json *out);
char *json_string(struct json *out);

/* The next value begins a line. */
void json_newline(struct json *out);

/* `key` is NULL inside an array and at the top. `bracket` is '{' or '[', and its partner in json_close. */
void json_open(struct json *out, const char *key, char bracket);
void json_close(struct json *out, char bracket);
void json_bool(struct json *out, const char *key, bool value);
void json_int(struct json *out, const char *key, long long value);
/* A number of seconds given in microseconds: exact, and free of the locale's decimal comma. */
void json_seconds(struct json *out, const char *key, long long microseconds);
void json_text(struct json *out, const char *key, const char *value);
/* A number under a numeric key: JSON keys are strings. */
void json_numbered(struct json *out, unsigned key, long long value);
/* `value` is JSON already. */
void json_raw(struct json *out, const char *key, const char *value);

#endif
