// A monitoring mixin: the files beside it, as jsonnet has them. Rules and board need no setting; _config changes what tools
// that read mixins usually ask for.
local rules = std.parseYaml(importstr '../prometheus/hookonce.rules.yaml').groups;
local isAlert(rule) = std.objectHas(rule, 'alert');
local only(keep) = [g { rules: std.filter(keep, g.rules) } for g in rules if std.length(std.filter(keep, g.rules)) > 0];

{
  _config+:: {
    // The folder of the board in Grafana.
    grafanaFolder: 'hookonce',
    tags: ['hookonce'],
  },
  grafanaDashboardFolder:: $._config.grafanaFolder,
  grafanaDashboards+:: {
    'hookonce.json': std.parseJson(importstr '../grafana/hookonce.json') { tags: $._config.tags },
  },
  prometheusAlerts+:: { groups+: only(isAlert) },
  prometheusRules+:: { groups+: only(function(rule) !isAlert(rule)) },
}
