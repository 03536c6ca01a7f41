/* A request without a reply: the error number and the sentence for each error of curl, before and
 * after the request has left. */
#include "../script_server.h"
#include "http/http_exchange.h"
#include <errno.h>

#define TOO_LARGE   ((CURLcode)100) /* CURLE_TOO_LARGE, which libcurl 7 lacks */
#define NOT_FOUND   ": its name was not resolved, check the network and the name server"
#define SPEAKS_TLS  ": check that it speaks https"
#define PROXY_IN    ": check http_proxy, HTTPS_PROXY and ALL_PROXY, and that the proxy runs, or add "
#define HEADERS     "Too large response headers: 307217 > 307200"
#define CAN_REACH   ": check the endpoint, and that the server runs and can be reached"
#define LONG_REPLY  "the reply of h:9 is too long, or there is no memory for it: check the endpoint"
#define TLS_FAILS   "cannot establish a TLS connection to h:9"
#define CHARS_40    "0123456789012345678901234567890123456789"
#define CHARS_120   CHARS_40 CHARS_40 CHARS_40
#define BY_PASSWORD "Unsupported proxy syntax in \'http://u:secret@p:1\'"

static struct http_shared *shared;

/* A handle that has sent nothing, and one that has sent a request. */
static struct http *fresh, *used;

struct failed {
	CURLcode code;
	const char *said, *url; /* NULL: none; one of the host h:9 */
	int own_error, socket_error;
	bool is_sent, is_late;
	bool has_other_handle; /* the fresh one though it is sent, or the used one though it is not
				*/
};

static int explain(const struct failed *failed, struct problem *ret_problem)
{
	const struct http_request request = {
		.url = failed->url ? failed->url : "http://user:secret@h:9/a@b?c@d",
		.deadline_ns = failed->is_late ? 1 : 0};
	struct http *http = failed->is_sent != failed->has_other_handle ? used : fresh;
	http->exchange = (struct exchange){
		.request = &request, .is_sent = failed->is_sent, .error = failed->own_error};
	http->socket_error = failed->socket_error;
	snprintf(http->error_text, sizeof http->error_text, "%s", failed->said ? failed->said : "");
	return http_explain(http, failed->code, ret_problem);
}

static const struct {
	struct failed failed;
	int error;
	const char *sentence;
} rows[] = {
	{{CURLE_COULDNT_RESOLVE_HOST}, -ENOENT,
		"cannot resolve the name of h:9: check the endpoint, the region and the network"},
	{{CURLE_COULDNT_RESOLVE_PROXY}, -ENOENT,
		"cannot resolve the name of the proxy to h:9: check http_proxy, HTTPS_PROXY and "
		"ALL_PROXY, or add the host to NO_PROXY"},
	{{CURLE_COULDNT_CONNECT}, -ECONNREFUSED, "cannot connect to h:9" CAN_REACH},
	{{CURLE_COULDNT_CONNECT, "Failed to connect to h port 9"}, -ECONNREFUSED,
		"cannot connect to h:9 (Failed to connect to h port 9)" CAN_REACH},
	{{CURLE_COULDNT_CONNECT, "Failed to connect to ::1 port 9", "http://[::1]:9/"},
		-ECONNREFUSED,
		"cannot connect to [::1]:9 (Failed to connect to ::1 port 9)" CAN_REACH},
	{{CURLE_COULDNT_CONNECT, "Failed to connect to p port 3128"}, -ECONNREFUSED,
		"cannot connect to the proxy for h:9 (Failed to connect to p port 3128)" PROXY_IN
		"the host to NO_PROXY"},
	{{CURLE_COULDNT_CONNECT, "Failed to connect to h port 3128"}, -ECONNREFUSED,
		"cannot connect to the proxy for h:9 (Failed to connect to h port 3128)" PROXY_IN
		"the host to NO_PROXY"},
	{{CURLE_COULDNT_CONNECT, "Failed to connect to h port 9 via p"}, -ECONNREFUSED,
		"cannot connect to the proxy for h:9 (Failed to connect to h port 9 via p)" PROXY_IN
		"the host to NO_PROXY"},
	{{CURLE_OPERATION_TIMEDOUT}, -ECONNREFUSED, "cannot connect to h:9" CAN_REACH},
	{{CURLE_SEND_ERROR}, -ECONNREFUSED, "cannot connect to h:9" CAN_REACH},

	/* TLS: a lasting reason, or a server that is about to start */
	{{CURLE_SSL_CONNECT_ERROR, "wrong version number"}, -EPROTO,
		TLS_FAILS " (wrong version number)" SPEAKS_TLS},
	{{CURLE_SSL_CONNECT_ERROR, "unsupported protocol"}, -EPROTO,
		TLS_FAILS " (unsupported protocol)" SPEAKS_TLS},
	{{CURLE_SSL_CONNECT_ERROR, "alert protocol version"}, -EPROTO,
		TLS_FAILS " (alert protocol version)" SPEAKS_TLS},
	{{CURLE_SSL_CONNECT_ERROR, "alert handshake failure"}, -EPROTO,
		TLS_FAILS " (alert handshake failure)" SPEAKS_TLS},
	{{CURLE_SSL_CONNECT_ERROR, "alert unknown ca"}, -EPROTO,
		TLS_FAILS " (alert unknown ca)" SPEAKS_TLS},
	{{CURLE_SSL_CONNECT_ERROR, "unexpected eof"}, -ECONNREFUSED,
		TLS_FAILS " (unexpected eof)" SPEAKS_TLS},
	{{CURLE_COULDNT_CONNECT, "unknown ca"}, -ECONNREFUSED,
		"cannot connect to h:9 (unknown ca)" CAN_REACH},
	{{CURLE_SSL_CERTPROBLEM}, -EPROTO, TLS_FAILS SPEAKS_TLS},
	{{CURLE_SSL_CIPHER}, -EPROTO, TLS_FAILS SPEAKS_TLS},
	{{CURLE_SSL_ENGINE_NOTFOUND}, -EPROTO, TLS_FAILS SPEAKS_TLS},
	{{CURLE_SSL_ISSUER_ERROR}, -EPROTO, TLS_FAILS SPEAKS_TLS},
	{{CURLE_PEER_FAILED_VERIFICATION, "x does not match target host name 'h'"}, -EPROTO,
		"the certificate of h:9 is for another name (x does not match target host name "
		"'h'): check the endpoint, or give the server a certificate for this name"},
	{{CURLE_PEER_FAILED_VERIFICATION, "self-signed"}, -EPROTO,
		"the certificate of h:9 is not trusted (self-signed): if the server is yours, give "
		"the file of its CA with --ca-bundle or AWS_CA_BUNDLE"},

	/* this host */
	{{CURLE_URL_MALFORMAT, "No host part"}, -EINVAL,
		"cannot send a request to h:9 (No host part): check the endpoint"},
	{{CURLE_UNSUPPORTED_PROTOCOL}, -EINVAL, "cannot send a request to h:9: check the endpoint"},
	{{CURLE_BAD_FUNCTION_ARGUMENT}, -EINVAL,
		"cannot send a request to h:9: check the endpoint"},
	{{CURLE_OUT_OF_MEMORY}, -ENOMEM, "out of memory during a request to h:9"},
	{{CURLE_COULDNT_CONNECT, .socket_error = -EMFILE}, -EMFILE,
		"no file descriptor is left for a connection to h:9: raise the limit (ulimit -n) "
		"or lower --concurrency"},
	{{CURLE_COULDNT_CONNECT, .socket_error = -ENFILE}, -EMFILE,
		"no file descriptor is left for a connection to h:9: raise the limit (ulimit -n) "
		"or lower --concurrency"},
	{{CURLE_COULDNT_CONNECT, .socket_error = -EACCES}, -ECONNREFUSED,
		"cannot connect to h:9" CAN_REACH},

	/* A callback has ended the request: its error comes first. */
	{{CURLE_ABORTED_BY_CALLBACK, .own_error = -ECANCELED}, -ECANCELED,
		"the request to h:9 was given up" NOT_FOUND},
	{{CURLE_BAD_FUNCTION_ARGUMENT, .own_error = -ECANCELED}, -ECANCELED,
		"the request to h:9 was given up"},
	{{CURLE_OPERATION_TIMEDOUT, .is_late = true}, -ECANCELED,
		"h:9 did not answer in time" NOT_FOUND},
	{{CURLE_COULDNT_CONNECT, .is_late = true}, -ECONNREFUSED,
		"cannot connect to h:9" CAN_REACH},
	{{CURLE_ABORTED_BY_CALLBACK, .own_error = -EIO}, -EIO,
		"the data for h:9 could not be read"},
	{{CURLE_ABORTED_BY_CALLBACK, .own_error = -EIO, .is_sent = true}, -EIO,
		"the data for h:9 could not be read"},
	{{CURLE_WRITE_ERROR, .own_error = -EMSGSIZE, .is_sent = true}, -EMSGSIZE, LONG_REPLY},
	{{CURLE_WRITE_ERROR, .own_error = -ENOMEM, .is_sent = true}, -ENOMEM,
		"out of memory during a request to h:9"},
	{{CURLE_ABORTED_BY_CALLBACK, .own_error = -ETIMEDOUT, .is_sent = true}, -ETIMEDOUT,
		"the transfer with h:9 stalled"},
	{{CURLE_ABORTED_BY_CALLBACK, .own_error = -ECANCELED, .is_sent = true}, -ECANCELED,
		"the request to h:9 was given up"},

	/* The request may have been applied. */
	{{CURLE_RECV_ERROR, .is_sent = true}, -ECONNRESET, "the connection to h:9 was lost"},
	{{CURLE_COULDNT_CONNECT, .is_sent = true}, -ECONNRESET, "the connection to h:9 was lost"},
	{{CURLE_COULDNT_CONNECT, .socket_error = -EMFILE, .is_sent = true}, -ECONNRESET,
		"the connection to h:9 was lost"},
	{{CURLE_GOT_NOTHING, "Empty reply from server", .is_sent = true}, -ECONNRESET,
		"the connection to h:9 was lost (Empty reply from server)"},
	{{CURLE_OPERATION_TIMEDOUT, .is_sent = true}, -ETIMEDOUT, "the transfer with h:9 stalled"},
	{{CURLE_OPERATION_TIMEDOUT, .is_sent = true, .is_late = true}, -ECANCELED,
		"h:9 did not answer in time"},

	/* Both signs are needed: a request that began, and bytes of one. The bytes may be those of
	 * a CONNECT. */
	{{CURLE_SEND_ERROR, .is_sent = true, .has_other_handle = true}, -ECONNREFUSED,
		"cannot connect to h:9" CAN_REACH},
	{{CURLE_SEND_ERROR, .has_other_handle = true}, -ECONNREFUSED,
		"cannot connect to h:9" CAN_REACH},

	/* The headers of the reply are too long, if there can be a reply. */
	{{CURLE_OUT_OF_MEMORY, .is_sent = true}, -EMSGSIZE, LONG_REPLY},
	{{TOO_LARGE, .is_sent = true}, -EMSGSIZE, LONG_REPLY},
	{{CURLE_RECV_ERROR, HEADERS, .is_sent = true}, -EMSGSIZE, LONG_REPLY},
	{{TOO_LARGE}, -ECONNREFUSED, "cannot connect to h:9" CAN_REACH},

	/* curl's message: at most 120 bytes of it, and no password */
	{{CURLE_RECV_ERROR, CHARS_120, .is_sent = true}, -ECONNRESET,
		"the connection to h:9 was lost (" CHARS_120 ")"},
	{{CURLE_RECV_ERROR, CHARS_120 "x", .is_sent = true}, -ECONNRESET,
		"the connection to h:9 was lost (" CHARS_120 ")"},
	{{CURLE_URL_MALFORMAT, BY_PASSWORD}, -EINVAL,
		"cannot send a request to h:9 (Unsupported proxy syntax in ***): check the "
		"endpoint"},
	{{CURLE_RECV_ERROR, .url = "https://h:9?a", .is_sent = true}, -ECONNRESET,
		"the connection to h:9 was lost"},
	{{CURLE_RECV_ERROR, .url = "https://u@x:p@h:9/", .is_sent = true}, -ECONNRESET,
		"the connection to h:9 was lost"},
	{{CURLE_RECV_ERROR, .url = "h:9#a", .is_sent = true}, -ECONNRESET,
		"the connection to h:9 was lost"},
};

static void test_rows(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct problem problem = {0};
		if (!CHECK_INT(explain(&rows[i].failed, &problem), rows[i].error) ||
			!CHECK_STRING(problem.text, rows[i].sentence))
			fprintf(stderr, "\trow %zu, code %d\n", i, (int)rows[i].failed.code);
	}
}

/* Whatever code curl gives, a request that may have been applied never gets an error that says it
 * was not, and one that was not sent never gets an error that leaves it open. */
static void test_every_code(void)
{
	for (int code = 1; code <= 110; code++)
		for (int late = 0; late < 2; late++) {
			struct problem problem = {0};
			struct failed failed = {
				.code = (CURLcode)code, .is_late = late, .is_sent = true};
			const int sent = explain(&failed, &problem);
			failed.is_sent = false;
			const int unsent = explain(&failed, &problem);
			if (!CHECK(sent == -ECONNRESET || sent == -ETIMEDOUT || sent == -EMSGSIZE ||
				    sent == -ECANCELED) ||
				!CHECK(unsent != -ECONNRESET && unsent != -ETIMEDOUT &&
					unsent != -EMSGSIZE && unsent != -EIO) ||
				!CHECK_INT(sent == -ECANCELED,
					late && code == CURLE_OPERATION_TIMEDOUT))
				fprintf(stderr, "\tcode %d: %d and %d\n", code, sent, unsent);
		}
}

int main(void)
{
	const struct script_step step = {"HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n"};
	struct script_server server;
	struct http_reply reply = {0};
	struct problem problem = {0};
	CHECK_INT(http_global_init(), 0);
	CHECK_INT(http_shared_new(&(const struct http_options){0}, &shared), 0);
	CHECK_INT(http_new(shared, &fresh), 0);
	CHECK_INT(http_new(shared, &used), 0);
	if (!script_start(&server, &step, 1))
		return check_result();
	const struct http_request request = {.method = "GET", .url = server.url, .no_proxy = true};
	CHECK_INT(http_perform(used, &request, &reply, &problem), 0);
	script_stop(&server);
	test_rows();
	test_every_code();
	http_reply_clear(&reply);
	http_free(fresh);
	http_free(used);
	http_shared_free(shared);
	script_clear(&server);
	return check_result();
}
