job "docs" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "bash"
        args = ["-c", <<-EOS
          set -e
          for i in 1 2; do
            echo "$i $${HOME} ${NOMAD_TASK_DIR}"
          done
        EOS
        ]
      }
      template {
        data = <<EOF
resources { memory = 9999 }
job "not this" { group "x" {} }
{{- range services }}
"quotes" \n stay ${attr.cpu.arch}
{{ end }}
EOF
        destination = "secrets/list"
      }
      template {
        data        = "one \"line\""
        destination = "local/line"
        env         = true
      }
      resources {
        memory = 400
      }
    }
  }
}
