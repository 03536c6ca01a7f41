// node manifests.js KUBERNETES_MODELS: what is wrong with the Kubernetes objects on standard input, a JSON array; a line for each fault.
// The schemas of the npm package kubernetes-models are made from Kubernetes' OpenAPI. They accept unknown fields. So the objects note
// which of their fields were looked at, and a field that none of the schemas has is a fault, too (as with kubeconform -strict).
const fs = require("fs");

function noted(value, path, fields) {
  if (value === null || typeof value !== "object") return value;
  const seen = new Set(), inner = {};
  fields.push(() => Object.keys(value).filter((key) => !seen.has(key)).map((key) => `${path}/${key}: no such field`));
  return new Proxy(value, {
    get(target, key) {
      if (!Object.prototype.hasOwnProperty.call(target, key)) return Reflect.get(target, key);
      seen.add(key);
      return (inner[key] ??= noted(target[key], `${path}/${String(key)}`, fields));
    },
  });
}

for (const object of JSON.parse(fs.readFileSync(0))) {
  const path = `${object.kind} ${object.metadata.name}`, fields = [];
  try {
    const Model = require(`${process.argv[2]}/${object.apiVersion}/${object.kind}.js`)[object.kind];
    Model.prototype.validate.call(noted(new Model(object), path, fields));
  } catch (error) {
    console.log(`${path}: ${error.message}`);
  }
  fields.flatMap((unseen) => unseen()).forEach((fault) => console.log(fault));
}
