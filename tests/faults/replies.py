"""Errors as S3 and DynamoDB say them."""

from tests.faults.http1 import Reply


def error_reply(service, status, code, message="said by the wire proxy"):
    """An error as this service says it."""
    if service == "s3":
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f"<Error><Code>{code}</Code><Message>{message}</Message><RequestId>proxy-{code}</RequestId></Error>"
        )
        headers = {"content-type": "application/xml", "x-amz-request-id": f"proxy-{code}"}
    else:
        body = f'{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"{message}"}}'
        headers = {"content-type": "application/x-amz-json-1.0", "x-amzn-requestid": f"proxy-{code}"}
    return Reply(status, headers, body.encode(), code)
