"""Documentation of the options with which modules reach a cluster, written once for all of them."""

CONNECTION = """{
    description: "How to reach the cluster, as the filter C(kafka_python_client) returns it.",
    type: dict,
    required: true,
    suboptions: {
        bootstrap_servers: {
            description: Brokers to ask first., type: list, elements: str, required: true,
        },
        security_protocol: {
            description: How the listener is secured., type: str, default: PLAINTEXT,
            choices: [PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL],
        },
        sasl_mechanism: {description: SASL mechanism., type: str},
        username: {description: User., type: str},
        password: {description: Password., type: str},
        ssl_ca: {description: "Certificate authority, as PEM text.", type: str},
        ssl_certificate: {description: "Client certificate, as PEM text.", type: str},
        ssl_key: {description: "Its private key, PKCS#8 PEM text.", type: str},
    },
}"""


class ModuleDocFragment:
    """Named by C(extends_documentation_fragment) of a module, which says whose connection it is."""

    DOCUMENTATION = f"options: {{connection: {CONNECTION}}}"
    LOGIN = f"options: {{login: {CONNECTION}}}"
    MIRROR = f"options: {{source: {CONNECTION}, target: {CONNECTION}}}"
