"""Fakes of the metadata service of EC2 (version 2, or 1 if told to) and of the agents of ECS and EKS, after AWS's
documentation of their wire formats."""

import uuid

from tests.system.fakes_keys import Fake

ROLES = "/latest/meta-data/iam/security-credentials/"


class Imds(Fake):
    """role: None for an instance without. version: the one it speaks. answer: in place of the credentials. notices: other
    metadata, by path, which has been asked for `asked` times."""

    def __init__(self, keys, role="uploader", version=2, answer=None, notices=None, **how):
        super().__init__(keys, **how)
        self.role, self.version, self.answer = role, version, answer
        self.notices, self.asked = notices or {}, 0
        self.tokens = set()

    def reply(self, method, path, headers, body):
        if path == "/latest/api/token":
            return self.reply_token(method, headers)
        if self.version == 2 and headers.get("x-aws-ec2-metadata-token") not in self.tokens:
            return 401, ""
        self.asked += 1
        if notice := self.notices.get(path.removeprefix("/latest/meta-data/")):
            return 200, notice
        if method != "GET" or not path.startswith(ROLES) or not self.role:
            return 404, ""
        if path == ROLES:
            return 200, self.role
        if path != ROLES + self.role:
            return 404, ""
        if self.answer:
            return self.answer
        key = self.keys.issue("imds", self.seconds)
        return 200, {"Code": "Success", "Type": "AWS-HMAC", "LastUpdated": key.expiration, **key.as_json()}

    def reply_token(self, method, headers):
        if self.version != 2:
            return 404, ""
        if method != "PUT" or not 1 <= int(headers.get("x-aws-ec2-metadata-token-ttl-seconds", 0)) <= 21600:
            return 400, ""
        if "x-forwarded-for" in headers:
            return 403, ""
        self.tokens.add(f"AQAE{uuid.uuid4().hex}==")
        return 200, max(self.tokens)


class Agent(Fake):
    """token: what the Authorization header must be. path: where the credentials are."""

    def __init__(self, keys, path="/v2/credentials/task?id=1", token=None, **how):
        super().__init__(keys, **how)
        self.path, self.token = path, token

    def reply(self, method, path, headers, body):
        if (method, path) != ("GET", self.path):
            return 404, {"code": "NotFound"}
        if headers.get("authorization") != self.token:
            return 401, {"code": "AccessDenied"}
        key = self.keys.issue("container", self.seconds)
        return 200, {"RoleArn": "arn:aws:iam::123456789012:role/task", **key.as_json()}
