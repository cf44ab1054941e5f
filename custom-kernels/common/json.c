#include "json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void keep(struct json *out) {
    char *memory = realloc(out->memory, out->kept + out->used + 1);
    if (memory == NULL) {
        out->error = errno;
        return;
    }
    memcpy(memory + out->kept, out->buffer, out->used);
    out->kept += out->used;
    memory[out->kept] = '\0';
    out->memory = memory;
}

static void flush(struct json *out) {
    size_t done = 0;
    if (out->fd < 0) {
        keep(out);
        done = out->used;
    }
    while (done < out->used && out->error == 0) {
        ssize_t wrote = write(out->fd, out->buffer + done, out->used - done);
        if (wrote > 0)
            done += (size_t)wrote;
        else if (wrote == 0)
            out->error = EIO;
        else if (errno != EINTR)
            out->error = errno;
    }
    out->used = 0;
}

static void put(struct json *out, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (out->used == sizeof out->buffer)
            flush(out);
        out->buffer[out->used++] = text[i];
    }
}

static void put_text(struct json *out, const char *text) {
    put(out, text, strlen(text));
}

static void put_unsigned(struct json *out, unsigned long long value, int min_digits) {
    char digits[24];
    int at = (int)sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
        min_digits--;
    } while (value > 0 || min_digits > 0);
    put(out, digits + at, sizeof digits - (size_t)at);
}

static void put_int(struct json *out, long long value) {
    if (value < 0) {
        put_text(out, "-");
        put_unsigned(out, -(unsigned long long)value, 1);
    } else {
        put_unsigned(out, (unsigned long long)value, 1);
    }
}

/* Length of the well-formed UTF-8 sequence at `text`, 0 if there is none: the kernel cuts thread names at 15
 * bytes, in the middle of a character if it falls so. */
static size_t utf8_length(const unsigned char *text) {
    size_t length = 0;
    if (text[0] >= 0xC2 && text[0] <= 0xDF)
        length = 2;
    else if (text[0] >= 0xE0 && text[0] <= 0xEF)
        length = 3;
    else if (text[0] >= 0xF0 && text[0] <= 0xF4)
        length = 4;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xF0 && text[1] < 0x90);
    bool surrogate = text[0] == 0xED && text[1] >= 0xA0;
    bool beyond = text[0] == 0xF4 && text[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : length;
}

static void put_escaped(struct json *out, unsigned char byte) {
    static const char hex[] = "0123456789abcdef";
    char escape[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
    put(out, escape, sizeof escape);
}

static void put_string(struct json *out, const char *value) {
    put_text(out, "\"");
    for (const unsigned char *at = (const unsigned char *)value; *at != '\0';) {
        size_t length = *at < 0x80 ? 1 : utf8_length(at);
        if (length == 0 || *at < 0x20 || *at == '"' || *at == '\\' || *at == 0x7F) {
            put_escaped(out, *at);
            length = 1;
        } else {
            put(out, (const char *)at, length);
        }
        at += length;
    }
    put_text(out, "\"");
}

static void begin_value(struct json *out, const char *key) {
    if (!out->first)
        put_text(out, ",");
    if (out->newline)
        put_text(out, "\n");
    out->first = out->newline = false;
    if (key != NULL) {
        put_string(out, key);
        put_text(out, ":");
    }
}

void json_start(struct json *out, int fd) {
    out->fd = fd;
    out->memory = NULL;
    out->kept = 0;
    out->error = 0;
    out->first = true;
    out->newline = false;
    out->used = 0;
}

void json_start_string(struct json *out) {
    json_start(out, -1);
}

void json_newline(struct json *out) {
    out->newline = true;
}

int json_finish(struct json *out) {
    put_text(out, "\n");
    flush(out);
    return out->error;
}

char *json_string(struct json *out) {
    flush(out);
    return out->error == 0 ? out->memory : NULL;
}

void json_open(struct json *out, const char *key, char bracket) {
    begin_value(out, key);
    put(out, &bracket, 1);
    out->first = true;
}

void json_close(struct json *out, char bracket) {
    put(out, &bracket, 1);
    out->first = false;
}

void json_bool(struct json *out, const char *key, bool value) {
    json_raw(out, key, value ? "true" : "false");
}

void json_int(struct json *out, const char *key, long long value) {
    begin_value(out, key);
    put_int(out, value);
}

void json_seconds(struct json *out, const char *key, long long microseconds) {
    begin_value(out, key);
    if (microseconds < 0)
        microseconds = 0;
    put_int(out, microseconds / 1000000);
    put_text(out, ".");
    put_unsigned(out, (unsigned long long)(microseconds % 1000000), 6);
}

void json_text(struct json *out, const char *key, const char *value) {
    begin_value(out, key);
    put_string(out, value);
}

void json_raw(struct json *out, const char *key, const char *value) {
    begin_value(out, key);
    put_text(out, value);
}

void json_numbered(struct json *out, unsigned key, long long value) {
    begin_value(out, NULL);
    put_text(out, "\"");
    put_unsigned(out, key, 1);
    put_text(out, "\":");
    put_int(out, value);
}
